"""How a model with a cache is used: chunk after chunk, one cache for each request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inferspec.conformance.arrays import Arrays
from inferspec.conformance.drivers import handed


def feed(model: Any, given: Mapping[str, Any], to: Arrays) -> Any:
    """Return the logits of all chunks in the order given, B×ΣL×V."""
    requests = given.get("requests") or [0] * len(given["chunks"])
    caches = {request: model.make_cache() for request in dict.fromkeys(requests)}
    logits = [
        to.to_numpy(to.ready(handed(model, tokens=chunk, cache=caches[request])))
        for chunk, request in zip(given["chunks"], requests, strict=True)
    ]
    return np.concatenate(logits, axis=1)
