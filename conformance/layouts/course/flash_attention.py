"""`attention.flash_attention`, of which the oldest edition takes no mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferspec.conformance.layouts import Offer
from inferspec.conformance.layouts.course.attention import EMPTY, FLOAT32, GROUPED, with_whole_masks
from inferspec.conformance.layouts.packages import Package
from inferspec.spec.flash_attention import CONTRACT

_LEADING: Any = CONTRACT.envelope["leading_dims"]
BATCH = tuple(lead for lead in _LEADING if len(lead) == 1)
"""B×H×L×E: the text has B.., its own code unpacks keys of exactly four axes."""


def _flash_attention(package: Package) -> Offer:
    own = with_whole_masks(package.find("flash_attention", home="attention"))
    asked: dict[str, Any] = {"dtypes": FLOAT32, "masks": GROUPED, "head_dims": (32, 64, 72, 80, 96, 112, 128)}
    return Offer(own, asked if _takes_any_batch(own) else {**asked, "leading_dims": BATCH}, unasked=EMPTY)


def _takes_any_batch(attend: Callable[..., Any]) -> bool:
    import mlx.core as mx

    heads = mx.zeros((1, 2, 32))
    try:
        mx.eval(attend(heads, heads, heads))
    except NotImplementedError:
        raise
    except Exception:
        return False
    return True


OFFERS = {"flash_attention": _flash_attention}
