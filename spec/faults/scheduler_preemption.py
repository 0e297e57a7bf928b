"""What becomes of who is preempted: what it keeps and computes again, and that it is told."""

from __future__ import annotations

from inferspec.spec import scheduler as spec
from inferspec.spec.changes import scheduler_preemption as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import NANO, VLLM
from inferspec.spec.faults.sources import TIRED

_fault = named("scheduler")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "forgets-output",
        "a preempted request begins anew",
        spec.SCHED_21,
        {"preempt": changes.forgets_output},
        "PROPERTIES SC1",
    ),
    _fault(
        "halves-lost",
        "what a resumed request has computed again in part is lost where another one leaves",
        spec.SCHED_04,
        {"close": changes.halves_lost},
        "the kind of https://github.com/sgl-project/sglang-jax/pull/1471",
    ),
    _fault(
        "halves-kept",
        "what a request has computed again in part counts as computed once it was preempted anew",
        spec.SCHED_21,
        {"preempt": changes.remembers_half, "allocate": changes.goes_on_from_half},
        f"{NANO}/commit/77dd709; {NANO}/pull/211",
    ),
    _fault(
        "prompt-alone",
        "a preempted request computes its prompt again, and not its output",
        spec.SCHED_21,
        {"preempt": changes.prompt_alone},
        f"{NANO}/commit/82f5ca2",
    ),
    _fault(
        "last-id-again",
        "a preempted request generates its last id once more",
        spec.SCHED_21,
        {"preempt": changes.last_missing},
        "PROPERTIES SC1",
    ),
    _fault(
        "limit-anew",
        "max_tokens counts from the last admission",
        spec.SCHED_21,
        {"preempt": changes.limit_anew, "done": changes.limit_since},
        "PROPERTIES SC1, CB3",
    ),
    _fault(
        "stale-hits",
        "a preempted request goes on where it was, in other blocks",
        spec.SCHED_21,
        {"preempt": changes.remembers_computed, "allocate": changes.stale_hits},
        f"{NANO}/commit/77dd709; {NANO}/pull/211",
    ),
    _fault(
        "frees-twice",
        "the end of a preempted request gives its blocks back once more",
        spec.SCHED_21,
        {"preempt": changes.frees_without_forgetting, "close": changes.frees_twice},
        "https://github.com/NVIDIA/TensorRT-LLM/pull/14937",
    ),
    _fault(
        "keeps-a-block",
        "a preempted request keeps a block",
        spec.SCHED_22,
        {"preempt": changes.keeps_blocks},
        "https://github.com/neuralmagic/vllm/pull/92",
    ),
    _fault(
        "chunk-of-the-victim",
        "a request is computed in the step that preempts it",
        spec.SCHED_22,
        {"decodes": changes.chunk_of_the_victim, "take": changes.ignores_lost},
        "PROPERTIES SC2",
    ),
    _fault(
        "eight-times",
        "a request that is preempted for the ninth time is finished as it is",
        spec.SCHED_21,
        {"preempt": changes.eight_times},
        TIRED,
    ),
    _fault(
        "hits-of-the-first-admission",
        "a preempted request begins behind what was cached of it when it was admitted first",
        spec.SCHED_21,
        {"allocate": changes.hits_of_the_first_admission},
        f"{VLLM}/pull/36859",
    ),
    _fault(
        "marks-nothing",
        "nothing of what was computed is hit",
        spec.SCHED_48,
        {"mark": changes.never_marks},
        "PROPERTIES PC9",
    ),
    _fault(
        "marks-going-on",
        "what the step computed that ends a request is not hit",
        spec.SCHED_48,
        {"advance": changes.marks_going_on},
        TIRED,
    ),
    _fault(
        "marks-whole-prompts",
        "what was computed of a prompt is hit when all of it was",
        spec.SCHED_48,
        {"mark": changes.marks_whole_prompts},
        TIRED,
    ),
    _fault(
        "marks-a-step-late",
        "what a step computed is hit from the step after the next one on, while who computed it runs",
        spec.SCHED_48,
        {
            "mark": changes.notes_what_is_computed,
            "schedule": changes.marks_after_admission,
            "release": changes.marks_when_released,
        },
        "https://github.com/mlc-ai/mlc-llm/commit/17ad72c6a82b4a112d614839ede3f50e634f7cb4",
    ),
    _fault(
        "marks-prompts-that-went-on",
        "prompts of requests of one id are not hit",
        spec.SCHED_48,
        {"mark": changes.marks_prompts_that_went_on},
        TIRED,
    ),
    _fault(
        "marks-prompts",
        "blocks of outputs are not hit",
        spec.SCHED_48,
        {"mark": changes.marks_prompts},
        TIRED,
    ),
    _fault(
        "marks-at-ends-of-blocks",
        "what was computed is hit only where a step ended with a block",
        spec.SCHED_48,
        {"mark": changes.marks_at_ends_of_blocks},
        TIRED,
    ),
    _fault(
        "marks-all-but-the-last",
        "a block is hit when a token after it was computed",
        spec.SCHED_48,
        {"mark": changes.marks_all_but_the_last},
        TIRED,
    ),
    _fault(
        "marks-until-one-ends",
        "what a step computed of those behind one that it ends is not hit",
        spec.SCHED_48,
        {"update": changes.marks_until_one_ends, "close": changes.notes_an_end, "mark": changes.marks_before_an_end},
        TIRED,
    ),
    _fault(
        "marks-once",
        "what a preempted request computes again is not hit",
        spec.SCHED_48,
        {"mark": changes.marks_once},
        TIRED,
    ),
    _fault(
        "marks-what-is-new",
        "of what a preempted request computes again only blocks are hit that it had not filled before",
        spec.SCHED_48,
        {"mark": changes.marks_what_is_new},
        TIRED,
    ),
    _fault(
        "told-while-they-wait",
        "who was preempted is told in each step until it runs again",
        spec.SCHED_49,
        {"schedule": changes.told_while_they_wait},
        TIRED,
    ),
    _fault(
        "told-in-the-next-step-too",
        "who was preempted is told in the next step too",
        spec.SCHED_49,
        {"schedule": changes.told_in_the_next_step_too},
        TIRED,
    ),
    _fault(
        "told-with-the-next",
        "who was preempted is told again when another one is",
        spec.SCHED_49,
        {"schedule": changes.told_with_the_next},
        TIRED,
    ),
    _fault(
        "told-twice",
        "who is preempted is told twice",
        spec.SCHED_49,
        {"schedule": changes.told_twice},
        TIRED,
    ),
)
