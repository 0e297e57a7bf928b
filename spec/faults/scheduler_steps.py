"""What goes into a step: budgets, prefills and decodes, and who is admitted."""

from __future__ import annotations

from inferspec.spec import scheduler as spec
from inferspec.spec.changes import scheduler_steps as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import COURSE, METAL, NANO, POST, VLLM
from inferspec.spec.faults.sources import TIRED

_fault = named("scheduler")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "budget-each",
        "max_prefill_tokens is for each request",
        spec.SCHED_09,
        {"count": changes.budget_each},
        "PROPERTIES SC5",
    ),
    _fault(
        "budget-of-the-new",
        "chunks of prompts that were begun are not counted",
        spec.SCHED_09,
        {"prefills": changes.budget_of_the_new},
        f"{POST}; PROPERTIES SC5",
    ),
    _fault(
        "budget-of-the-prompts",
        "what a preempted request generated is not counted when it is computed again",
        spec.SCHED_09,
        {"prefills": changes.budget_of_the_prompts},
        "PROPERTIES SC2, SC5",
    ),
    _fault(
        "budget-overrun",
        "a prompt is computed whole while any budget is left",
        spec.SCHED_09,
        {"count": changes.whole_if_begun},
        f"{NANO}/commit/8d63a98",
    ),
    _fault(
        "budget-below-zero",
        "where more generate than the budget has tokens, prompts have no limit",
        spec.SCHED_09,
        {"prefills": changes.budget_below_zero},
        "https://github.com/openvinotoolkit/openvino.genai/pull/831",
    ),
    _fault(
        "one-request-more",
        "max_requests + 1 run",
        spec.SCHED_10,
        {"has_place": changes.one_request_more},
        "PROPERTIES SC5",
    ),
    _fault(
        "prompts-not-counted",
        "requests that do not generate yet do not count as running",
        spec.SCHED_10,
        {"has_place": changes.generating_alone_count},
        "PROPERTIES SC5",
    ),
    _fault(
        "chunk-a-block",
        "a prompt has a chunk for each block in one step",
        spec.SCHED_11,
        {"prefills": changes.block_by_block},
        "PROPERTIES SC5",
    ),
    _fault(
        "prefill-and-decode",
        "a prompt's last chunk comes with a decode of the same request",
        spec.SCHED_11,
        {"schedule": changes.twice_where_it_ends},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "all-prefills",
        "requests that generate are among the prefills",
        spec.SCHED_12,
        {"schedule": changes.all_prefills},
        "nano-vLLM post, part 5",
    ),
    _fault(
        "single-tokens-are-decodes",
        "the last token of a prompt is a decode where it is computed by itself",
        spec.SCHED_12,
        {"schedule": changes.single_tokens_are_decodes},
        "vLLM splits the batches of its attention backends by the number of query tokens",
    ),
    _fault(
        "recomputed-as-decodes",
        "a preempted request computes its prompt again as decodes",
        spec.SCHED_12,
        {"preempt": changes.still_decoding},
        f"{NANO}/commit/82f5ca2",
    ),
    _fault(
        "skips-after-a-victim",
        "the request behind one that needed a block is left out",
        spec.SCHED_13,
        {"decodes": changes.skips_after_a_victim},
        f"{VLLM}/issues/49097",
    ),
    _fault(
        "ends-at-its-own-preemption",
        "those admitted behind a request that gives up its own blocks are left out",
        spec.SCHED_13,
        changes.ends_at_its_own_preemption(),
        f"{VLLM}/pull/26765",
    ),
    _fault(
        "decodes-before-prompts",
        "those who generate behind a prompt that is still computed are left out",
        spec.SCHED_13,
        {"decodes": changes.decodes_before_prompts},
        TIRED,
    ),
    _fault(
        "decodes-for-sixteen",
        "a step decodes for sixteen requests at most",
        spec.SCHED_13,
        {"decodes": changes.sixteen_at_most},
        TIRED,
    ),
    _fault(
        "decodes-in-the-budget",
        "no more requests are decoded than the prefill budget has tokens",
        spec.SCHED_13,
        {"decodes": changes.decodes_in_the_budget},
        "PROPERTIES SC5",
    ),
    _fault(
        "admits-or-decodes",
        "a step that admits decodes for nobody",
        spec.SCHED_14,
        {"schedule": changes.admits_or_decodes},
        "Sarathi (Agrawal et al. 2023)",
    ),
    _fault(
        "hits-in-the-budget",
        "cached tokens are charged to the budget",
        spec.SCHED_15,
        {"prefills": changes.hits_in_the_budget},
        f"{NANO}/commit/77dd709",
    ),
    _fault(
        "admission-counts-decodes",
        "nobody is admitted while as many generate as the budget of prompts has tokens",
        spec.SCHED_15,
        {"pending": changes.pending_of_decodes},
        TIRED,
    ),
    _fault(
        "output-one-by-one",
        "a preempted request computes its output again a token a step",
        spec.SCHED_15,
        {"count": changes.output_one_by_one},
        "https://github.com/vllm-project/vllm-ascend/pull/11334",
    ),
    _fault(
        "eight-prompts-a-step",
        "a step has chunks of no more than eight prompts, whatever budget is left",
        spec.SCHED_15,
        {"prefills": changes.eight_prompts},
        TIRED,
    ),
    _fault(
        "keeps-one-back",
        "one block is never used for admission",
        spec.SCHED_15,
        {"allocate": changes.keeps_one_back},
        f"{METAL}/9b27db0",
    ),
    _fault(
        "room-for-the-whole",
        "a request waits for room for all its blocks, though others have some of them in use",
        spec.SCHED_15,
        {"allocate": changes.room_for_the_whole},
        f"{VLLM}/pull/11565",
    ),
    _fault(
        "reserves-to-the-limit",
        "a request waits until there is room for all that it and those who run may generate",
        spec.SCHED_15,
        {"allocate": changes.reserves_to_the_limit},
        "https://github.com/NVIDIA/TensorRT-LLM/issues/2866",
    ),
    _fault(
        "one-length-at-a-time",
        "who is not as long as the first of those who generate is preempted",
        spec.SCHED_20,
        {"decodes": changes.one_length_at_a_time},
        "https://github.com/EricLBuehler/mistral.rs/issues/2024",
    ),
    _fault(
        "keeps-a-tenth-back",
        "nobody is admitted beside others while less than a tenth of all blocks is free",
        spec.SCHED_15,
        {"allocate": changes.keeps_a_part_back(0.1)},
        "https://github.com/InternLM/lmdeploy/pull/4100",
    ),
    _fault(
        "ends-of-the-prompt",
        "what ends the last request of a prompt ends all that have it",
        spec.SCHED_02,
        {"add": changes.ends_of_the_prompt, "ends": changes.by_the_prompt},
        "PROPERTIES CB3, CB4",
    ),
    _fault(
        "room-when-the-first-left",
        "of several requests that end in a step only the blocks of the first are seen to be free in the next",
        spec.SCHED_15,
        {
            "update": changes.room_not_looked_at,
            "close": changes.room_when_the_first_left,
            "allocate": changes.allocates_by_that_room,
        },
        TIRED,
    ),
)
