"""`attention.flash_attention`, of which the oldest edition takes no mask."""

from __future__ import annotations

from inferspec.conformance.layouts import Offer
from inferspec.conformance.layouts.course.attention import EMPTY, FLOAT32, GROUPED, with_whole_masks
from inferspec.conformance.layouts.packages import Package


def _flash_attention(package: Package) -> Offer:
    own = with_whole_masks(package.find("flash_attention", home="attention"))
    return Offer(own, {"dtypes": FLOAT32, "masks": GROUPED, "head_dims": (32, 64, 72, 80, 96, 112, 128)}, unasked=EMPTY)


OFFERS = {"flash_attention": _flash_attention}
