"""`attention.paged_attention`; whether its mask is causal by default differs from edition to edition, so it is always said."""

from __future__ import annotations

from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.attention import FLOAT32
from inferspec.conformance.bridge.layouts.packages import Package


def _paged_attention(package: Package) -> Offer:
    own = package.find("paged_attention", home="attention")

    def paged_attention(
        query: Any,
        key_pages: Any,
        value_pages: Any,
        block_table: Any,
        context_lens: Any,
        page_size: int,
        scale: float | None = None,
        mask: str | None = "causal",
    ) -> Any:
        return own(query, key_pages, value_pages, block_table, context_lens, page_size, scale=scale, mask=mask)

    return Offer(
        paged_attention,
        {"dtypes": FLOAT32, "table_dtypes": ("int32",), "head_dims": (32, 64, 72, 80, 96, 112, 128), "pages": 4096},
    )


OFFERS = {"paged_attention": _paged_attention}
