"""`basics`: linear, silu, and softmax, which takes its axis always."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.packages import Package

MODEL = ("float32", "bfloat16")
"""The dtypes of what a model does in its own."""


def _linear(package: Package) -> Offer:
    return Offer(package.find("linear", home="basics"), {"dtypes": MODEL})


def _silu(package: Package) -> Offer:
    return Offer(package.find("silu", home="basics"), {"dtypes": MODEL})


def _softmax(package: Package) -> Offer:
    own = package.find("softmax", home="basics")

    def softmax(x: Any, axis: int = -1) -> Any:
        return own(x, axis)

    return Offer(softmax, {"dtypes": ("float32",)})


OFFERS = {"linear": _linear, "silu": _silu, "softmax": _softmax}
