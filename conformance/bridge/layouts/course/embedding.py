"""`embedding.Embedding`, and as_linear of it."""

from __future__ import annotations

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.linear import MODEL
from inferspec.conformance.bridge.layouts.packages import Package


def _embedding(package: Package) -> Offer:
    return Offer(package.find("Embedding", home="embedding", needs=("__init__", "__call__")), {"dtypes": MODEL})


def _as_linear(package: Package) -> Offer:
    return Offer(package.find("Embedding", home="embedding", needs=("__init__", "as_linear")), {"dtypes": MODEL})


OFFERS = {"Embedding": _embedding, "Embedding.as_linear": _as_linear}
