"""Mistakes in the loop of generation with which id comes out: the greedy one, and that of a sampler."""

from __future__ import annotations

from inferspec.spec.changes import generation_choices as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.generation_sources import SEEDS, TIRED, VLLM_METAL
from inferspec.spec.generation import GEN_01, GEN_09, GEN_10, GEN_11, GEN_12

FAULTS: tuple[Fault, ...] = (
    Fault(
        "generation-highest-of-equals",
        "of equal logits the highest id is taken",
        GEN_09,
        {"greedy": changes.highest_of_equals},
        "https://github.com/vllm-project/vllm/pull/50979 (ties by path)",
    ),
    Fault(
        "generation-minus-infinity-is-zero",
        "a logit of -inf is taken for 0",
        GEN_01,
        {"greedy": changes.finite},
        "PROPERTIES SA8",
    ),
    Fault(
        "generation-first-position",
        "the logits of the first position decide",
        GEN_10,
        {"last": changes.first_position},
        f"{VLLM_METAL}/commit/d20dd02",
    ),
    Fault(
        "generation-position-before",
        "the logits of the position before the last decide",
        GEN_10,
        {"last": changes.position_before},
        TIRED,
    ),
    Fault(
        "generation-argmax-of-all",
        "the largest logit of all positions decides",
        GEN_10,
        {"choose": changes.flat},
        "https://github.com/skyzh/tiny-llm/commit/05972ff (a reduction without axis)",
    ),
    Fault(
        "generation-mean-position", "the mean over positions decides", GEN_10, {"last": changes.mean_position}, TIRED
    ),
    Fault(
        "generation-logits-in-bfloat16",
        "logits are rounded to bfloat16 first",
        GEN_10,
        {"greedy": changes.in_bfloat16},
        "https://github.com/ml-explore/mlx-lm/pull/1912 (filters in bfloat16)",
    ),
    Fault(
        "generation-logits-in-eight-bits",
        "logits are rounded to 8 bits first",
        GEN_10,
        {"greedy": changes.in_eight_bits},
        "PROPERTIES X5",
    ),
    Fault(
        "generation-sampler-sees-all",
        "the sampler is given the logits of all positions",
        GEN_11,
        {"choose": changes.sampler_sees_all},
        SEEDS,
    ),
    Fault(
        "generation-sampler-sees-probabilities",
        "the sampler is given probabilities",
        GEN_11,
        {"pick": changes.sampler_sees_probabilities},
        "https://github.com/skyzh/tiny-llm/commit/13295fc (probabilities and their logarithms)",
    ),
    Fault(
        "generation-sampler-sees-temperature",
        "the sampler is given logits that were scaled already",
        GEN_11,
        {"pick": changes.sampler_sees_temperature},
        TIRED,
    ),
    Fault(
        "generation-sampler-sees-less",
        "the sampler is not given the last id's logit",
        GEN_11,
        {"pick": changes.sampler_sees_less},
        TIRED,
    ),
    Fault(
        "generation-sampler-sees-4096",
        "the sampler is given the largest 4096 logits, and none of the others",
        GEN_11,
        {"pick": changes.sampler_sees_the_first(4096)},
        TIRED,
    ),
    Fault(
        "generation-samples-the-prompt",
        "the sampler is asked at every position of the prompt",
        GEN_12,
        {"choose": changes.sampled_at_every_position},
        "PROPERTIES SA9",
    ),
    Fault(
        "generation-samples-twice",
        "the sampler is asked twice for each id",
        GEN_12,
        {"pick": changes.sampled_twice},
        "PROPERTIES SA9",
    ),
    Fault(
        "generation-sampler-forgotten",
        "the sampler is not asked",
        GEN_12,
        {"pick": changes.sampler_forgotten},
        "PROPERTIES X13",
    ),
    Fault(
        "generation-first-id-greedy",
        "the id that prefill gives is greedy, whatever the sampler",
        GEN_12,
        {"choose": changes.first_id_greedy},
        TIRED,
    ),
    Fault(
        "generation-feeds-greedy-back",
        "what is fed back is the most likely id, not the one that came out",
        GEN_12,
        {"ids": changes.feeds_greedy_back},
        TIRED,
    ),
)
