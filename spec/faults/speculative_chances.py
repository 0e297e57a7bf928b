"""Mistakes of speculative decoding above temperature 0: what ids are drawn from, and by which uniform numbers."""

from __future__ import annotations

from inferspec.spec.changes import speculative_chances as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.speculative_sources import MLX_LM, TIRED, TRANSFORMERS
from inferspec.spec.speculative_sentences import (
    SPEC_34,
    SPEC_35,
    SPEC_36,
    SPEC_59,
)

POST = "the nano-vLLM post, part 7, samples from a wrong residual"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "speculative-rest-is-the-target",
        "a rejected draft gives way to a draw from the target's row",
        SPEC_34,
        changes.verifies(residual=lambda self, q, p: p),
        POST,
    ),
    Fault(
        "speculative-ratio-inverted",
        "a draft is kept with q/p for p/q",
        SPEC_34,
        changes.verifies(keeps=lambda self, u, q, p: u * p < q),
        TIRED,
    ),
    Fault(
        "speculative-sampled-keeps-all",
        "above temperature 0 every draft is kept",
        SPEC_34,
        changes.verifies(keeps=lambda self, u, q, p: True),
        f"{TRANSFORMERS}/pull/28508",
    ),
    Fault(
        "speculative-kept-if-likeliest",
        "above temperature 0 a draft is kept where it is the likeliest id, and nowhere else",
        SPEC_34,
        {"verified": changes.greedy_all_the_same},
        TIRED,
    ),
    Fault(
        "speculative-normalised-over-all-rows",
        "the target's probabilities are normalised over all rows of a round",
        SPEC_34,
        {"target_chances": changes.over_all_rows},
        f"{MLX_LM}/commit/91d0a054",
    ),
    Fault(
        "speculative-target-unfiltered",
        "top_k and top_p act on the draft alone",
        SPEC_34,
        {"target_chances": changes.without(top_k=None, top_p=1.0)},
        f"{TRANSFORMERS}/issues/47932 (one side processed)",
    ),
    Fault(
        "speculative-last-row-unfiltered",
        "where every draft is kept, the id after them is drawn from all that the target gives, filtered or not",
        SPEC_34,
        {"target_chances": changes.last_row(top_k=None, top_p=1.0)},
        "https://pypi.org/project/mlx-optiq/0.7.7, _mtp_loop_iter",
    ),
    Fault(
        "speculative-first-id-unfiltered",
        "the first id comes of the prompt's logits, and no filter; drafts are filtered from there on",
        SPEC_34,
        changes.first_round(top_k=None, top_p=1.0),
        "https://pypi.org/project/mlx-optiq/0.7.7, _mtp_loop_iter",
    ),
    Fault(
        "speculative-last-row-untempered",
        "where every draft is kept, the id after them is drawn at a temperature of 1",
        SPEC_34,
        {"target_chances": changes.last_row(temperature=1.0)},
        TIRED,
    ),
    Fault(
        "speculative-first-id-untempered",
        "the first id is drawn at a temperature of 1; drafts are tempered from there on",
        SPEC_34,
        changes.first_round(temperature=1.0),
        TIRED,
    ),
    Fault(
        "speculative-rest-unfiltered",
        "what comes in the place of a rejected draft is drawn from what the filters left out too",
        SPEC_34,
        {"verified": changes.rest(top_k=None, top_p=1.0)},
        TIRED,
    ),
    Fault(
        "speculative-rest-untempered",
        "what comes in the place of a rejected draft is drawn at a temperature of 1",
        SPEC_35,
        {"verified": changes.rest(temperature=1.0)},
        TIRED,
    ),
    Fault(
        "speculative-no-filter-of-one",
        "a top_k of 1 filters nothing",
        SPEC_34,
        dict.fromkeys(("target_chances", "draft_chances"), changes.no_filter_of_one),
        TIRED,
    ),
    Fault(
        "speculative-greedy-drafts-told-otherwise",
        "the draft's likeliest id is drafted, and verified as if it had been drawn",
        SPEC_34,
        {"propose": changes.greedy_drafts_told_otherwise},
        f"{TRANSFORMERS}/issues/47932",
    ),
    Fault(
        "speculative-greedy-when-cold",
        "a temperature below 1e-5 counts as 0, also where logits are equal",
        SPEC_34,
        {"ids": changes.greedy_when_cold},
        "vLLM, _SAMPLING_EPS",
    ),
    Fault(
        "speculative-tempered-in-bfloat16",
        "logits are divided by the temperature in bfloat16, whatever they lost by it",
        SPEC_34,
        dict.fromkeys(("target_chances", "draft_chances"), changes.tempered_in("bfloat16")),
        "https://github.com/deepseek-ai/DeepSpec/issues/31",
    ),
    Fault(
        "speculative-target-untempered",
        "the temperature acts on the draft alone",
        SPEC_35,
        {"target_chances": changes.without(temperature=1.0)},
        f"{TRANSFORMERS}/issues/47932 (one side processed)",
    ),
    Fault(
        "speculative-target-unprocessed",
        "temperature and filters act on the draft alone",
        SPEC_35,
        {"target_chances": changes.unprocessed},
        f"{TRANSFORMERS}/issues/47932 (one side processed)",
    ),
    Fault(
        "speculative-tells-raw-chances",
        "drafts are drawn from what was tempered and filtered, and verified by what was not",
        SPEC_34,
        {"propose": changes.tells_raw_chances},
        f"{TRANSFORMERS}/issues/47932",
    ),
    Fault(
        "speculative-filters-first",
        "top_p sees the probabilities before the temperature, of target and draft",
        SPEC_59,
        {"target_chances": changes.filtered_first, "draft_chances": changes.filtered_first},
        "llama.cpp's, mlx-lm's and the course's order",
    ),
    Fault(
        "speculative-numbers-of-verify-first",
        "the numbers of verification are taken before those of the drafts",
        SPEC_36,
        {"draft": changes.numbers_of_verify_first},
        "PROPERTIES SA9",
    ),
    Fault(
        "speculative-chances-in-float16",
        "the probabilities that drafts are verified by are in float16",
        SPEC_36,
        changes.chances_in("float16"),
        "https://github.com/huggingface/transformers/issues/27341",
    ),
    Fault(
        "speculative-top-p-in-bfloat16",
        "the probabilities that top_p sums are in bfloat16, of target and draft",
        SPEC_36,
        changes.top_p_in("bfloat16"),
        "https://github.com/NVIDIA/Megatron-LM/pull/7182",
    ),
    Fault(
        "speculative-numbers-in-bfloat16",
        "uniform numbers are rounded to bfloat16",
        SPEC_36,
        {"number": changes.number_in_bfloat16},
        "PROPERTIES X5",
    ),
    Fault(
        "speculative-tells-untempered-chances",
        "drafts are verified by what they were drawn from but for the temperature",
        SPEC_36,
        {"propose": changes.tells_untempered_chances},
        f"{TRANSFORMERS}/issues/47932",
    ),
    Fault(
        "speculative-numbers-of-eight-drafts",
        "drafts past the eighth of a round are drawn by the uniform numbers of the first ones",
        SPEC_36,
        {"propose": changes.numbers_of_eight},
        TIRED,
    ),
    Fault(
        "speculative-draws-among-256",
        "above temperature 0 no id past the 256th is drawn",
        SPEC_36,
        {"target_chances": changes.chances_of_256, "draft_chances": changes.chances_of_256},
        TIRED,
    ),
    Fault(
        "speculative-one-number-more",
        "each round takes a uniform number that decides nothing",
        SPEC_36,
        {"draft": changes.one_number_more},
        "PROPERTIES SA9",
    ),
)
