"""The keys and values of one layer, where a kernel writes them in place."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels.cpu.buffers import View


class Stored:
    """Two arrays of MLX, P×H×page_size×D each (for a dense cache a batch row is a page), evaluated.

    pointers: of the first key and value. Nobody but the owner of the arrays may make one: writing through the pointers
    changes every array that shares their memory. ValueError for arrays with gaps between their elements.
    """

    __slots__ = ("keys", "pointers", "values")

    def __init__(self, keys: mx.array, values: mx.array) -> None:
        views = View(keys), View(values)
        if not all(view.is_contiguous for view in views):
            raise ValueError("keys and values have gaps between their elements")
        self.keys, self.values = keys, values
        self.pointers = views[0].pointer, views[1].pointer
