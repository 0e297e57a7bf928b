"""Mistakes in the verification of drafts, and other honest ways to do it."""

from __future__ import annotations

from typing import Any

import numpy as np

from inferspec.spec.changes import verification as changes
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults.sources import BACKWARD_ROWS
from inferspec.spec.faults.speculative_sources import OPENVINO, TIRED, TRANSFORMERS
from inferspec.spec.mistakes import ignores_strides, mutates, promotes, remembers, rows_in_order_of_memory, unguarded
from inferspec.spec.speculative import Verify
from inferspec.spec.speculative_sentences import (
    SPEC_01,
    SPEC_02,
    SPEC_03,
    SPEC_04,
    SPEC_05,
    SPEC_06,
    SPEC_07,
    SPEC_08,
    SPEC_09,
    SPEC_10,
    SPEC_11,
    SPEC_12,
    SPEC_13,
    SPEC_14,
    SPEC_15,
    SPEC_16,
    SPEC_17,
    SPEC_18,
    SPEC_19,
    SPEC_20,
    SPEC_21,
    SPEC_22,
    SPEC_55,
    SPEC_63,
    VERIFY,
)

POST = "the nano-vLLM post, part 7, samples from a wrong residual"
PAPER = "Leviathan et al. 2023, algorithm 1, misread"
VLLM = "https://github.com/vllm-project/vllm"


def _keeps(name: str, text: str, kills: Any, keeps: changes.Keeps, source: str) -> Fault:
    return Fault(name, text, kills, {"keeps": keeps}, source)


VERIFY_FAULTS: tuple[Fault, ...] = (
    _keeps("verify-keeps-all", "every draft is kept", SPEC_01, lambda s, u, q, p: True, f"{TRANSFORMERS}/pull/28508"),
    _keeps("verify-keeps-none", "no draft is kept", SPEC_01, lambda s, u, q, p: False, TIRED),
    _keeps("verify-ratio-inverted", "a draft is kept with q/p for p/q", SPEC_01, lambda s, u, q, p: u * p < q, PAPER),
    _keeps("verify-target-alone", "a draft is kept with p, whatever q", SPEC_01, lambda s, u, q, p: u < p, PAPER),
    _keeps(
        "verify-level-is-kept",
        "a draft is kept where the uniform number is p/q too",
        SPEC_01,
        lambda s, u, q, p: u * q <= p and p > 0,
        PAPER,
    ),
    _keeps(
        "verify-likelier-alone",
        "a draft is kept where p >= q and nowhere else",
        SPEC_01,
        lambda s, u, q, p: p >= q,
        PAPER,
    ),
    _keeps(
        "verify-coin-inverted",
        "a draft is kept where the uniform number is large, not where it is small",
        SPEC_01,
        lambda s, u, q, p: (1 - u) * q <= p,
        TIRED,
    ),
    Fault(
        "verify-drawn-alike",
        "a draft is kept where the target draws the same id",
        SPEC_01,
        {"kept": changes.drawn_alike},
        "https://github.com/ml-explore/mlx-swift-lm/pull/459",
    ),
    Fault(
        "verify-counts-behind-a-rejection",
        "the drafts that would be kept are counted, behind a rejected one too",
        SPEC_01,
        {"kept": changes.counts_all},
        f"{TRANSFORMERS}/pull/28508",
    ),
    Fault(
        "verify-target-row-off-by-one",
        "each draft is compared with the target's row after it",
        SPEC_01,
        {"kept": changes.compared_with(lambda i, count: i + 1)},
        "https://github.com/ml-explore/mlx-lm/commit/91d0a054 (rows of the accepted path)",
    ),
    Fault(
        "verify-one-number-for-all",
        "the first uniform number decides every draft",
        SPEC_01,
        {"kept": changes.compared_with(lambda i, count: i, lambda i: 0)},
        f"{VLLM}/issues/11123",
    ),
    Fault(
        "verify-numbers-of-zero",
        "all uniform numbers but the first stay unset, at 0",
        SPEC_01,
        {"kept": changes.first_of_zeros},
        f"{VLLM}/issues/11123",
    ),
    Fault(
        "verify-rest-is-the-target",
        "a rejected draft gives way to a draw from the target's row",
        SPEC_02,
        {"residual": lambda self, q, p: p},
        PAPER,
    ),
    Fault(
        "verify-rest-without-the-draft",
        "a rejected draft gives way to a draw from the target's row without it",
        SPEC_02,
        {"weights": changes.without_the_draft},
        POST,
    ),
    Fault(
        "verify-rest-swapped",
        "what the draft has more than the target is drawn from",
        SPEC_02,
        {"residual": lambda self, q, p: Verify.residual(self, p, q)},
        PAPER,
    ),
    Fault(
        "verify-rest-both-ways",
        "what is left is |p - q|",
        SPEC_02,
        {"residual": lambda self, q, p: np.abs(p - q) if (p != q).any() else p},
        PAPER,
    ),
    Fault("verify-rest-unnormalised", "what is left is not normalised", SPEC_02, {"draw": changes.unnormalised}, PAPER),
    Fault(
        "verify-rest-of-the-next-row",
        "what is left is taken from the row behind the rejected draft's",
        SPEC_02,
        {"weights": changes.rest_of(1)},
        TIRED,
    ),
    Fault(
        "verify-rest-greedy",
        "the likeliest of what is left comes, without a draw",
        SPEC_02,
        {"draw": changes.likeliest},
        f"{VLLM}/issues/11123 (draws by exponentials)",
    ),
    Fault(
        "verify-nothing-for-a-rejection",
        "of a rejected draft nothing comes",
        SPEC_02,
        {"verified": changes.ids(lambda self, tokens, ids: ids if len(ids) > len(tokens) else ids[:-1])},
        OPENVINO,
    ),
    Fault(
        "verify-number-used-twice",
        "the number that rejected a draft draws the id in its place",
        SPEC_02,
        {"last_number": lambda self, u, count: float(u[count])},
        PAPER,
    ),
    Fault(
        "verify-no-bonus",
        "when all drafts are kept, no id comes after them",
        SPEC_03,
        {"verified": changes.ids(lambda self, tokens, ids: ids[: max(len(tokens), 1)])},
        PAPER,
    ),
    Fault(
        "verify-bonus-twice",
        "the id after the drafts comes twice",
        SPEC_03,
        {"verified": changes.ids(lambda self, tokens, ids: [*ids, ids[-1]] if len(ids) > len(tokens) else ids)},
        TIRED,
    ),
    Fault(
        "verify-bonus-from-the-row-before",
        "the id after the drafts is drawn from the last draft's row",
        SPEC_03,
        {"weights": changes.bonus_from(-1)},
        "https://github.com/ml-explore/mlx-lm/commit/91d0a054 (rows of the accepted path)",
    ),
    Fault(
        "verify-bonus-from-a-rest",
        "the id after the drafts is drawn from what the last row has more than the last draft's",
        SPEC_03,
        {"weights": changes.bonus_from_a_rest},
        TIRED,
    ),
    Fault(
        "verify-nothing-of-nothing",
        "of no drafts no id comes",
        SPEC_04,
        {"verified": changes.ids(lambda self, tokens, ids: ids if tokens else [])},
        "PROPERTIES SP5",
    ),
    Fault(
        "verify-greedy-without-drafts",
        "of no drafts the likeliest id comes",
        SPEC_04,
        {"verified": changes.greedy_without_drafts},
        "PROPERTIES SP5",
    ),
    Fault(
        "verify-last-unverified",
        "the last draft is not looked at",
        SPEC_05,
        {"kept": changes.last_unverified},
        OPENVINO,
    ),
    Fault(
        "verify-eight-drafts",
        "drafts past the eighth are not looked at",
        SPEC_05,
        {"kept": changes.first_eight},
        TIRED,
    ),
    Fault(
        "verify-32-drafts",
        "drafts past the 32nd are not looked at",
        SPEC_05,
        {"kept": changes.first_32},
        TIRED,
    ),
    Fault(
        "verify-one-draft-fewer",
        "a rejection takes the draft before it along",
        SPEC_05,
        {"kept": changes.one_fewer},
        OPENVINO,
    ),
    _keeps(
        "verify-zero-keeps-the-impossible",
        "at a uniform number of 0 a draft is kept that the target cannot give",
        SPEC_06,
        lambda s, u, q, p: u * q <= p,
        "PROPERTIES SA1, SP3",
    ),
    _keeps(
        "verify-zero-by-zero-is-one",
        "the least of 1 and 0 / 0 is 1, as Python has it: a draft that neither row can give is kept",
        SPEC_06,
        lambda s, u, q, p: p == q or u * q < p,
        TIRED,
    ),
    _keeps(
        "verify-eps-in-the-ratio",
        "an eps beside q rejects, once in a while, a draft from the target's own row",
        SPEC_06,
        lambda s, u, q, p: u < p / (q + 1e-6),
        "PROPERTIES SP3",
    ),
    _keeps(
        "verify-floor-under-q",
        "a floor under q rejects most of the drafts that are rarer than it, from the target's own row too",
        SPEC_06,
        lambda s, u, q, p: u * max(q, 1e-6) < p,
        "PROPERTIES SP3",
    ),
    _keeps(
        "verify-zero-by-zero",
        "a draft of probability 0 is rejected, though the target can give it",
        SPEC_63,
        lambda s, u, q, p: q > 0 and u * q < p,
        TIRED,
    ),
    _keeps(
        "verify-smoothed",
        "a floor under p keeps drafts that greedy decoding cannot give",
        SPEC_07,
        lambda s, u, q, p: u * q < max(p, 1e-5),
        "PROPERTIES SP2",
    ),
    Fault(
        "verify-first-number-draws",
        "the first uniform number draws the last id",
        SPEC_08,
        {"last_number": lambda self, u, count: float(u[0])},
        PAPER,
    ),
    Fault(
        "verify-last-number-decides",
        "the number of the last draw decides the first draft too",
        SPEC_08,
        {"kept": changes.compared_with(lambda i, count: i, lambda i: -1 if i == 0 else i)},
        TIRED,
    ),
    Fault(
        "verify-past-the-vocabulary",
        "a uniform number that float32 sums do not reach gives an id past the vocabulary",
        SPEC_09,
        {"draw": changes.past_float32_sums},
        "https://github.com/apache/mxnet/issues/19073",
    ),
    Fault(
        "verify-clamped-to-the-last",
        "a uniform number that float32 sums do not reach gives the last id, possible or not",
        SPEC_09,
        {"draw": changes.clamped_to_the_last},
        "PROPERTIES SA1",
    ),
    Fault(
        "verify-zero-draws-the-first",
        "a uniform number of 0 draws id 0, though it is impossible",
        SPEC_09,
        {"draw": changes.zero_draws_the_first},
        "PROPERTIES SA1",
    ),
    Fault(
        "verify-nothing-left-is-id-0",
        "where nothing is left of p - q, id 0 comes",
        SPEC_10,
        {"residual": lambda self, q, p: np.maximum(p - q, 0)},
        "https://github.com/flashinfer-ai/flashinfer/commit/006fe19a4 (a draw from nothing)",
    ),
    Fault(
        "verify-nothing-left-is-anything",
        "where nothing is left of p - q, every id is as likely",
        SPEC_10,
        {"residual": lambda self, q, p: rest if (rest := np.maximum(p - q, 0)).any() else np.ones(len(p))},
        TIRED,
    ),
    Fault(
        "verify-rest-in-bfloat16",
        "what the target has more of is rounded to bfloat16",
        SPEC_55,
        {"residual": changes.rest_in_bfloat16},
        "PROPERTIES X5",
    ),
    Fault(
        "verify-large-weights-in-bfloat16",
        "of more than 8192 ids the last one is drawn from probabilities in bfloat16",
        SPEC_55,
        {"draw": changes.large_weights_in_bfloat16},
        "PROPERTIES X5",
    ),
    Fault(
        "verify-long-sums-in-bfloat16",
        "of more than 256 ids the cdf of the last one is summed in bfloat16",
        SPEC_55,
        {"draw": changes.long_sums_in_bfloat16},
        "PROPERTIES X5",
    ),
    Fault(
        "verify-sums-in-bfloat16",
        "the cdf of the last id is summed in bfloat16",
        SPEC_55,
        {"draw": changes.sums_in_bfloat16},
        "PROPERTIES X5",
    ),
    _keeps(
        "verify-in-bfloat16", "probabilities are compared in bfloat16", SPEC_11, changes.in_bfloat16, "PROPERTIES X5"
    ),
    Fault(
        "verify-in-the-dtype-of-drafts",
        "the target's probabilities are rounded to the dtype of the draft's",
        SPEC_11,
        {"answer": changes.in_the_dtype_of_drafts},
        TIRED,
    ),
    Fault(
        "verify-sums-of-exactly-one",
        "rows that rounding left a little off one are refused",
        SPEC_11,
        {"guard_sums": changes.strict_sums},
        TIRED,
    ),
    Fault(
        "verify-uint16-ids",
        "ids come out in 16 bits",
        SPEC_12,
        {"verified": changes.ids(lambda self, tokens, ids: [token % 2**16 for token in ids])},
        "PROPERTIES X8",
    ),
    Fault(
        "verify-int16-ids",
        "ids past 32767 come out negative",
        SPEC_12,
        {"verified": changes.ids(lambda self, tokens, ids: [(token + 2**15) % 2**16 - 2**15 for token in ids])},
        "PROPERTIES X8",
    ),
    Fault("verify-no-lists", "a list of drafts is refused", SPEC_13, {"guard": changes.no_lists}, TIRED),
    *(
        Fault(
            f"verify-backward-{name.replace('_', '-')}",
            f"rows of {name} that lie backwards are read in the order in which they lie",
            SPEC_14,
            rows_in_order_of_memory(name),
            f"the kind of {BACKWARD_ROWS}",
        )
        for name in ("draft_probs", "target_probs")
    ),
    Fault(
        "verify-draft-strides",
        "draft_probs are read as if they were contiguous",
        SPEC_14,
        ignores_strides("draft_probs"),
        f"{VLLM}/issues/11123 (a copy for a view)",
    ),
    Fault(
        "verify-target-strides",
        "target_probs are read as if they were contiguous",
        SPEC_14,
        ignores_strides("target_probs"),
        "PROPERTIES X1",
    ),
    Fault(
        "verify-uniform-strides",
        "uniform numbers are read as if they were contiguous",
        SPEC_14,
        ignores_strides("uniform"),
        "PROPERTIES X1",
    ),
    Fault(
        "verify-zeroes-the-target",
        "a rejected draft is zeroed in the caller's target_probs",
        SPEC_15,
        {"respond": changes.zeroes_the_draft},
        "https://github.com/vllm-project/vllm-ascend/pull/2881",
    ),
    Fault(
        "verify-changes-the-numbers",
        "the uniform numbers are overwritten",
        SPEC_15,
        mutates("uniform"),
        "PROPERTIES X6",
    ),
    Fault(
        "verify-remembers-the-target",
        "rows kept by their shape serve another call",
        SPEC_16,
        remembers("target_probs"),
        "https://github.com/flashinfer-ai/flashinfer/commit/82784bb11",
    ),
    Fault("verify-float-ids", "ids come out as floats", SPEC_17, promotes(), "PROPERTIES X4"),
    Fault(
        "verify-misfits",
        "numbers of rows and ids that do not fit are not refused",
        SPEC_18,
        unguarded("guard_counts"),
        "PROPERTIES X9",
    ),
    Fault(
        "verify-any-draft-rows-of-no-drafts",
        "draft_probs are not looked at where nothing is drafted",
        SPEC_18,
        {"guard_counts": changes.draft_rows_where_drafted},
        "PROPERTIES X9",
    ),
    Fault("verify-negative-ids", "drafts below 0 count from the end", SPEC_19, unguarded("guard_ids"), "PROPERTIES X9"),
    Fault(
        "verify-clamped-ids",
        "drafts outside the vocabulary are moved into it",
        SPEC_19,
        {**unguarded("guard_ids"), "answer": changes.clamped},
        "PROPERTIES X9",
    ),
    Fault(
        "verify-any-sign", "negative probabilities are not refused", SPEC_20, unguarded("guard_signs"), "PROPERTIES X9"
    ),
    Fault(
        "verify-nan-passes",
        "only negative probabilities are refused: NaN passes every comparison",
        SPEC_20,
        {"guard_signs": changes.negative_alone},
        "PROPERTIES X9, SA8",
    ),
    Fault(
        "verify-any-sum",
        "rows that do not sum to one are not refused",
        SPEC_21,
        unguarded("guard_sums"),
        f"{TRANSFORMERS}/issues/47932 (logits for probabilities)",
    ),
    Fault(
        "verify-any-number",
        "uniform numbers outside [0, 1) are not refused",
        SPEC_22,
        unguarded("guard_uniform"),
        "PROPERTIES X9",
    ),
    Fault(
        "verify-number-of-one",
        "a uniform number of 1 is taken",
        SPEC_22,
        {"guard_uniform": changes.one_is_taken},
        TIRED,
    ),
)


REST_FAULTS: tuple[Fault, ...] = (
    Fault(
        "verify-rest-by-ratio",
        "what the target has more of is p · (1 - q/p) in float32, which says little where they are nearly equal",
        SPEC_55,
        {"residual": changes.rest_by_ratio},
        "https://github.com/vllm-project/vllm/pull/46665",
    ),
    Fault(
        "verify-rest-in-logarithms",
        "what the target has more of is exp(log p + log(1 - exp(log q - log p))) in float32",
        SPEC_55,
        {"residual": changes.rest_in_logarithms},
        "https://github.com/vllm-project/vllm/pull/46665 (in logarithms)",
    ),
)


VERIFY_VARIANTS: tuple[Variant, ...] = (
    Variant(
        "verify-by-division",
        "the uniform number is compared with p/q in float32",
        VERIFY,
        {"keeps": changes.by_division},
    ),
    Variant("verify-by-logarithms", "logarithms are compared, in float32", VERIFY, {"keeps": changes.by_logarithms}),
    Variant("verify-all-at-once", "every draft is decided, the last one first", VERIFY, {"kept": changes.all_at_once}),
    Variant("verify-by-search", "ids are drawn by a search in the normalised cdf", VERIFY, {"draw": changes.by_search}),
    Variant(
        "verify-next-number",
        "uniform numbers are taken one after the other: the last id is drawn with the one after that which rejected",
        VERIFY,
        {"last_number": lambda self, u, count: float(u[min(count + 1, len(u) - 1)])},
    ),
    Variant(
        "verify-nothing-impossible",
        "a draft that its own row calls impossible is rejected, as in vLLM",
        VERIFY,
        {"keeps": changes.nothing_impossible},
        unmet=("SPEC-63",),
    ),
    Variant(
        "verify-refuses-the-impossible",
        "a draft that its own row calls impossible is refused",
        VERIFY,
        {"guard": changes.refuses_the_impossible},
        unmet=("SPEC-63",),
    ),
    Variant(
        "verify-arrays-alone",
        "drafts are an array; a list of them is refused",
        VERIFY,
        {"guard": changes.no_lists},
        envelope={"drafts": ("array",)},
    ),
    Variant(
        "verify-arrays-undeclared",
        "drafts are an array; a list of them is refused, and that is not declared",
        VERIFY,
        {"guard": changes.no_lists},
        unmet=("SPEC-13",),
    ),
    Variant("verify-in-float32", "all arithmetic is in float32", VERIFY, {"answer": changes.in_float32}),
)
