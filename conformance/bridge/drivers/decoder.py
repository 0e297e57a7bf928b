"""How a model with a cache is used: chunk after chunk, one cache for each request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import handed
from inferspec.conformance.bridge.results import no_output_object


def feed(model: Any, given: Mapping[str, Any], to: Arrays) -> Any:
    """Return the logits of all chunks in the order given, B×ΣL×V. The request None has no cache."""
    chunks = given["chunks"]
    requests, rewinds = given.get("requests") or [0] * len(chunks), given.get("rewinds") or [0] * len(chunks)
    caches = {request: None if request is None else model.make_cache() for request in dict.fromkeys(requests)}
    fed: dict[Any, list[Any]] = {request: [] for request in caches}
    logits = []
    for chunk, request, dropped in zip(chunks, requests, rewinds, strict=True):
        answer = handed(model, tokens=chunk, cache=caches[request])
        logits.append(to.to_numpy(to.ready(no_output_object(answer))))
        fed[request].append(chunk)
        if dropped:
            caches[request], fed[request] = _rewound(model, caches[request], fed[request], dropped)
    return np.concatenate(logits, axis=1)


def _rewound(model: Any, cache: Any, fed: list[Any], dropped: int) -> tuple[Any, list[Any]]:
    """The cache without its last tokens, and what it was fed: rewound where it can be, else made anew."""
    left: list[Any] = []
    remaining = sum(chunk.shape[1] for chunk in fed) - dropped
    for chunk in fed:
        length = min(chunk.shape[1], remaining)
        if length:
            left.append(chunk[:, :length])
        remaining -= length
    layers = cache if isinstance(cache, Sequence) else [cache]
    if layers and all(callable(getattr(layer, "rewind", None)) for layer in layers):
        for layer in layers:
            layer.rewind(dropped)
        return cache, left
    cache = model.make_cache()
    for chunk in left:
        handed(model, tokens=chunk, cache=cache)
    return cache, left
