"""`layer_norm.RMSNorm`: statistics in float32 for float16 and bfloat16 too, as the text says.

Since July 2026 the text says as well that the quotient is rounded before the weight multiplies.
"""

from __future__ import annotations

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.editions import is_of_july_2026
from inferspec.conformance.bridge.layouts.packages import Package

BEFORE = {"RMS-06": "the text of this edition does not say what is rounded before the weight multiplies"}


def _rms_norm(package: Package) -> Offer:
    own = package.find("RMSNorm", home="layer_norm", needs=("__init__", "__call__"))
    return Offer(own, unasked={} if is_of_july_2026(package) else BEFORE)


OFFERS = {"RMSNorm": _rms_norm}
