"""`Qwen3MLP` of week 1 (or the Qwen2 of older editions), with dense weights."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.linear import MODEL
from inferspec.conformance.bridge.layouts.packages import NotOffered, Package
from inferspec.spec.mlp import CONTRACT

_LEADING: Any = CONTRACT.envelope["leading_dims"]
TOKENS = tuple(lead for lead in _LEADING if lead)
"""The text's x is N..×L×E: there are tokens always."""
HOMES = ("qwen3_week1", "qwen2_week1")


def _mlp(package: Package) -> Offer:
    packed: list[str] = []
    for name in ("Qwen3MLP", "Qwen2MLP"):
        with contextlib.suppress(NotOffered):
            own = package.find(name, home=HOMES, needs=("__init__", "__call__"))
            if "QuantizedWeights" not in str(inspect.signature(own)):
                return Offer(own, {"dtypes": MODEL, "leading_dims": TOKENS})
            packed.append(f"{own.__module__}.{name} takes packed weights; that of week 1 is not there")
    raise NotOffered(*packed[:1] or ["there is no Qwen3MLP that is more than a stub"])


OFFERS = {"SwiGLU": _mlp}
