"""Launches the rotary position embedding kernel."""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels.metal import SIMDGROUP, Kernel

HEADS_PER_THREAD = 4
"""As in the kernel: so many heads share a thread's cosine and sine."""

_kernel = Kernel("rope", ["x", "starts", "frequencies", "traditional"])


def launch(x: mx.array, starts: list[int], frequencies: mx.array, traditional: bool) -> mx.array:
    """Return x, B×L×H×D, with its pairs turned; the arguments are checked already.

    starts: the position of each batch row's first token, B of them or one for all; frequencies: dims/2, float32.
    """
    if not x.size:
        return mx.zeros(x.shape, x.dtype)
    batch, length, heads, features = x.shape
    columns = features - frequencies.shape[0]
    return _kernel(
        [x, mx.broadcast_to(mx.array(starts, mx.int32), (batch,)), frequencies, traditional],
        template=[("T", x.dtype)],
        grid=(columns, -(-heads // HEADS_PER_THREAD), batch * length),
        threadgroup=(min(columns, 2 * SIMDGROUP), 1, 1),
        shape=x.shape,
        dtype=x.dtype,
    )
