"""What goes wrong on paths of multi-head attention: heads of another size than the hidden features tell, of many features, many of them, a
token after many others, and one array for query, key and value, or for the last two."""

from __future__ import annotations

from inferspec.spec import attention as spec
from inferspec.spec.changes import multi_head_attention as heads
from inferspec.spec.changes.attention_paths import masks_of_a_batch
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER
from inferspec.spec.mistakes import (
    ignores_strides,
    lacks_a_feature,
    leaves_unwritten,
    only_where,
    paths_break_promises,
    paths_misread,
    remembers,
)

PATHS = (
    ("free-heads", "of heads whose size is not that of the hidden features over their number", heads.of_free_heads),
    ("wide-heads", "of heads of 64 dims and more", heads.of_wide_heads),
    ("many-heads", "of more than eight heads", heads.of_many_heads),
    ("late-tokens", "of a token after more than 64 others", heads.of_a_late_token),
)

ONE_ARRAY = "where query, key and value are one array"
ONE_MEMORY = "where key and value are one array that is not the query"

FAULTS: tuple[Fault, ...] = (
    *(
        fault
        for path, where, holds in PATHS
        for fault in (
            *paths_misread(
                f"mha-{path}",
                where,
                spec.MHA_06,
                holds,
                {"query": None, "key": None, "value": None, "wq": None, "wo": None},
            ),
            *paths_break_promises(f"mha-{path}", where, holds, spec.MHA_07, spec.MHA_08, spec.MHA_09, ("key", "wv")),
            Fault(
                f"mha-masked-{path}-lack-a-feature",
                f"{where} under a mask, the last feature is not written",
                spec.MHA_04,
                lacks_a_feature(heads.masked_where(holds)),
                ENGINEER,
            ),
            Fault(
                f"mha-{path}-of-the-last-row",
                f"{where} the last row of a batch is not written",
                spec.MHA_05,
                only_where(holds, leaves_unwritten(lambda out: out[: max(len(out) - 1, 1)] if out.ndim > 2 else out)),
                ENGINEER,
            ),
        )
    ),
    Fault(
        "mha-masks-of-batches-contiguous",
        "masks of several sequences are read as if they were contiguous",
        spec.MHA_06,
        only_where(masks_of_a_batch, ignores_strides("mask")),
        ENGINEER,
    ),
    Fault(
        "mha-one-array-scale-of-hidden-head-dim",
        f"{ONE_ARRAY}, the scale is (hidden_size / num_heads)^-0.5",
        spec.MHA_03,
        only_where(heads.of_one_array, {"scale": lambda self, a: (a.hidden_size / a.num_heads) ** -0.5}),
        ENGINEER,
    ),
    Fault(
        "mha-one-memory-scale-of-hidden-head-dim",
        f"{ONE_MEMORY}, the scale is (hidden_size / num_heads)^-0.5",
        spec.MHA_03,
        only_where(heads.of_one_memory, {"scale": lambda self, a: (a.hidden_size / a.num_heads) ** -0.5}),
        ENGINEER,
    ),
    Fault(
        "mha-one-array-added-mask-hides",
        f"{ONE_ARRAY}, a mask that is added hides every key at which it is not 0",
        spec.MHA_04,
        only_where(heads.of_one_array, heads.remasked_heads(heads.mask_of_zeros)),
        "https://github.com/pytorch/pytorch/issues/107084",
    ),
    *paths_misread("mha-one-array", ONE_ARRAY, spec.MHA_06, heads.of_one_array, {"query": None}),
    *paths_break_promises(
        "mha-one-array", ONE_ARRAY, heads.of_one_array, spec.MHA_07, spec.MHA_08, spec.MHA_09, ("query", "wq")
    ),
    Fault(
        "mha-one-memory-causal-top-left",
        f"{ONE_MEMORY}, the causal mask is aligned top-left",
        spec.MHA_04,
        only_where(heads.of_one_memory, {"masked": heads.top_left}),
        ENGINEER,
    ),
    *paths_misread("mha-one-memory", ONE_MEMORY, spec.MHA_06, heads.of_one_memory, {"key": None}),
    Fault(
        "mha-one-memory-remembered",
        f"{ONE_MEMORY}, its projections are those of the first call of these shapes: an encoder's serve the next one's",
        spec.MHA_09,
        only_where(heads.of_one_memory, remembers("key", "value")),
        ENGINEER,
    ),
)
