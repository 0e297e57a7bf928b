"""What goes wrong in paged attention with numbers: sums, maxima, partial results that are merged."""

from __future__ import annotations

from inferspec.spec import paged_attention as spec
from inferspec.spec.changes import paged_attention as changes
from inferspec.spec.changes import tiles
from inferspec.spec.changes.attention_weights import (
    NAN_HIDES,
    NAN_TO_ZERO,
    half_products_saturate,
    logits_summed_in_dtype,
    starts_at,
    total_summed_in_dtype,
    values_summed_in_dtype,
)
from inferspec.spec.changes.flash_attention import walk_in_dtype
from inferspec.spec.changes.tiles import walking
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER

FAULTS: tuple[Fault, ...] = (
    Fault(
        "paged-values-summed-in-dtype",
        "the running values are in the input's dtype",
        spec.PAGED_15,
        changes.attending({"combine": values_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-values-rounded-between-pages",
        "the running values are stored in the input's dtype between tiles",
        spec.PAGED_15,
        changes.attending({"attended": walk_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-total-summed-in-dtype",
        "the running sum of the weights is in the input's dtype",
        spec.PAGED_15,
        changes.attending({"weights": total_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-logits-summed-in-dtype",
        "the logits are accumulated in the input's dtype",
        spec.PAGED_15,
        changes.attending({"logits": logits_summed_in_dtype}),
        ENGINEER,
    ),
    Fault(
        "paged-maximum-from-sentinel",
        "the running maximum starts at -5e4: rows below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(-5e4)),
        FLASHINFER + "commit/d7f2c6464",
    ),
    Fault(
        "paged-maximum-from-minus-1e9",
        "the running maximum starts at -1e9: rows below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(-1e9)),
        ENGINEER,
    ),
    Fault(
        "paged-maximum-from-minus-1e30",
        "the running maximum starts at -1e30: rows below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(-1e30)),
        ENGINEER,
    ),
    Fault(
        "paged-products-saturate",
        "of float16 heads of 64 and 128 features products of queries and keys end at 65504 before they are scaled",
        spec.PAGED_16,
        changes.attending({"logits": half_products_saturate}),
        ENGINEER,
    ),
    Fault(
        "paged-maximum-from-zero",
        "the running maximum starts at 0: rows far below it are zeros",
        spec.PAGED_16,
        changes.attending(starts_at(0.0)),
        ENGINEER,
    ),
    Fault(
        "paged-never-rescaled",
        "earlier tokens are not rescaled when the maximum grows",
        spec.PAGED_17,
        changes.attending(walking(16, add=tiles.sums_kept)),
        ENGINEER,
        forms=tuple(changes.attending(form) for form in tiles.in_other_tiles(16, add=tiles.sums_kept)),
    ),
    Fault(
        "paged-values-not-rescaled",
        "the running sum of the weights is rescaled, the running values are not",
        spec.PAGED_17,
        changes.attending(walking(32, add=tiles.values_kept)),
        ENGINEER,
        forms=tuple(changes.attending(form) for form in tiles.in_other_tiles(32, add=tiles.values_kept)),
    ),
    Fault(
        "paged-total-not-rescaled",
        "the running values are rescaled, the running sum of the weights is not",
        spec.PAGED_17,
        changes.attending(walking(32, add=tiles.total_kept)),
        ENGINEER,
        forms=tuple(changes.attending(form) for form in tiles.in_other_tiles(32, add=tiles.total_kept)),
    ),
    Fault(
        "paged-nan-to-zero",
        "NaN in the pages is taken for 0, as that of slots that were never written",
        spec.PAGED_30,
        {"read": changes.without_nan},
        "PROPERTIES PA2",
        forms=(changes.attending(NAN_TO_ZERO),),
    ),
    Fault(
        "paged-nan-is-no-logit",
        "a NaN among the logits is taken for a hidden token",
        spec.PAGED_30,
        changes.attending(NAN_HIDES),
        "IEEE 754, section 6.2",
    ),
    Fault(
        "paged-nan-tile-forgotten",
        "the running maximum begins anew after a tile with a NaN, whose sums are left out",
        spec.PAGED_30,
        changes.attending(walking(64, top=tiles.top_after_nan, factor=tiles.nothing_of_nan, add=tiles.after_nan)),
        ENGINEER,
    ),
    Fault(
        "paged-token-past-tiles-of-96",
        "a token that is one more than tiles of 96 is never read",
        spec.PAGED_04,
        changes.attending(walking(96, tiles=tiles.all_but_one_past)),
        ENGINEER,
    ),
    Fault(
        "paged-partitions-averaged",
        "partitions of 64 tokens are normalised by themselves and averaged",
        spec.PAGED_17,
        changes.attending(walking(64, add=tiles.each_tile_normalised)),
        ENGINEER,
    ),
)
