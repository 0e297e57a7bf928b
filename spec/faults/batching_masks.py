"""Mistakes of batches in what their queries see: padding, the future, idle slots."""

from __future__ import annotations

from inferspec.spec import batching as spec
from inferspec.spec.changes import batching as batches
from inferspec.spec.changes import batching_masks as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.batching_sources import MLX_LM, TINY_LLM, TIRED
from inferspec.spec.faults.defining import named

_fault = named("batching")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "aligned-at-the-start",
        "requests are aligned at the start of their rows",
        spec.BATCH_02,
        {"place": batches.left},
        "PROPERTIES BK1",
    ),
    Fault(
        "batching-padding-at-the-end",
        "padding is masked as if requests were aligned at the start of their rows, which they are not",
        spec.BATCH_02,
        batches.after(changes.padding_at_the_end(empties=False)),
        TIRED,
        forms=(batches.after(changes.padding_at_the_end(empties=True)),),
    ),
    _fault(
        "padding-visible",
        "padding is not masked",
        spec.BATCH_02,
        batches.after(changes.padding_visible),
        f"{MLX_LM}/issues/1906",
    ),
    _fault(
        "one-column-of-padding",
        "the last column of padding is visible",
        spec.BATCH_02,
        batches.after(changes.one_column_of_padding),
        "PROPERTIES BK1",
    ),
    _fault(
        "first-token-masked",
        "padding is masked one column too far",
        spec.BATCH_02,
        batches.after(changes.first_hidden),
        "PROPERTIES BK1",
    ),
    _fault(
        "mask-of-the-first",
        "every request has the mask of the first one",
        spec.BATCH_02,
        batches.after(changes.padding_of_the_first),
        "PROPERTIES X3",
    ),
    _fault(
        "mask-inverted",
        "the bool mask says what is hidden",
        spec.BATCH_02,
        batches.after(batches.inverted),
        "the meaning of torch's key_padding_mask",
    ),
    _fault(
        "soft-mask",
        "hidden keys get -10000 added and stay visible",
        spec.BATCH_02,
        batches.after(batches.soft_mask),
        "the mask of early BERT implementations",
    ),
    _fault(
        "bool-as-numbers",
        "the mask is 1 and 0, to be added",
        spec.BATCH_02,
        batches.after(batches.bool_as_numbers),
        "a bool mask is added instead of masking",
    ),
    _fault(
        "top-left",
        "the causal mask is aligned top-left in each request",
        spec.BATCH_03,
        {"visible": changes.top_left},
        spec.DECISIONS,
    ),
    _fault(
        "not-causal",
        "queries see the tokens after them",
        spec.BATCH_03,
        {"visible": changes.all_visible},
        "PROPERTIES BK1",
    ),
    _fault(
        "not-itself",
        "the queries of a chunk do not see their own token",
        spec.BATCH_03,
        {"visible": changes.strictly_before},
        "PROPERTIES BK1",
    ),
    _fault(
        "chunk-alone",
        "the queries of a chunk see the chunk alone",
        spec.BATCH_03,
        {"visible": changes.window_of_queries},
        "PROPERTIES CP1",
    ),
    _fault(
        "no-mask-for-equal-lengths",
        "requests of equal lengths are not masked at all",
        spec.BATCH_03,
        batches.after(changes.no_mask_for_equal_lengths),
        "PROPERTIES BK1",
    ),
    _fault(
        "idle-causal",
        "idle slots have a causal mask",
        spec.BATCH_04,
        {"idle": changes.idle_causal},
        f"{TINY_LLM}/4d4a292",
    ),
    _fault(
        "idle-own-token",
        "an idle slot sees what it is given",
        spec.BATCH_04,
        {"idle": changes.idle_own_token},
        "PROPERTIES BK2",
    ),
    _fault(
        "left-slot-visible",
        "a slot that is left is masked as before",
        spec.BATCH_04,
        {"leave": batches.remembers_left, "idle": changes.left_slots_stay},
        "PROPERTIES BK2",
    ),
)
