"""`layer_norm.RMSNorm`: statistics in float32 for float16 and bfloat16 too, as the text says."""

from __future__ import annotations

from inferspec.conformance.layouts import Offer
from inferspec.conformance.layouts.packages import Package


def _rms_norm(package: Package) -> Offer:
    return Offer(package.find("RMSNorm", home="layer_norm", needs=("__init__", "__call__")))


OFFERS = {"RMSNorm": _rms_norm}
