"""What chunks have and build on, what is computed of steps that nothing came of, and what may be hit."""

from __future__ import annotations

from inferspec.spec import scheduler as spec
from inferspec.spec.changes import scheduler_chunks as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import COURSE, METAL, MLX_LM, NANO, VLLM
from inferspec.spec.faults.sources import TIRED

_fault = named("scheduler")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "overlapping-chunks",
        "a chunk begins with the last token of the one before",
        spec.SCHED_04,
        {"take": changes.overlaps},
        "PROPERTIES CP2",
    ),
    _fault(
        "leaping-chunks",
        "a chunk that shared its step begins too late the next time",
        spec.SCHED_04,
        {"take": changes.leaps},
        f"{MLX_LM}/cd367819",
    ),
    _fault(
        "chunks-from-the-start",
        "every chunk of a prompt begins at 0",
        spec.SCHED_04,
        {"start": changes.from_the_start},
        f"{METAL}/9081de3",
    ),
    _fault(
        "empty-chunks",
        "requests for which no budget is left have a chunk of no tokens",
        spec.SCHED_04,
        {"prefills": changes.empty_chunks},
        f"{NANO}/commit/8d63a98",
    ),
    _fault(
        "tokens-of-the-start",
        "every chunk has the first tokens of its prompt",
        spec.SCHED_05,
        {"chunk": changes.tokens_of_the_start},
        f"{MLX_LM}/cd367819",
    ),
    _fault(
        "token-before",
        "a decode feeds the token before the last",
        spec.SCHED_05,
        {"chunk": changes.token_before},
        f"{COURSE}/05972ff",
    ),
    _fault(
        "past-the-end",
        "the last chunk is counted from the whole prompt, and never samples",
        spec.SCHED_06,
        {"count": changes.of_the_prompt_s_length},
        f"{MLX_LM}/cd367819",
    ),
    _fault(
        "samples-always",
        "every chunk of a prompt samples",
        spec.SCHED_06,
        {"samples": changes.always_samples},
        f"{METAL}/dc602da; PROPERTIES CP3",
    ),
    _fault(
        "samples-one-early",
        "a chunk that ends one token before the prompt samples",
        spec.SCHED_06,
        {"samples": changes.one_past_samples},
        "PROPERTIES CP3",
    ),
    _fault(
        "samples-for-one-id",
        "of a request that asks for one id every chunk samples",
        spec.SCHED_06,
        {"samples": changes.always_for_one_id},
        "https://github.com/PaddlePaddle/FastDeploy/pull/5736",
    ),
    _fault(
        "full-budget-not-last",
        "a prompt that fills the budget does not sample",
        spec.SCHED_06,
        {"chunk": changes.when_not_full},
        f"{VLLM}/pull/7380",
    ),
    _fault(
        "one-token-too-cached",
        "a prompt that is hit begins one token too late",
        spec.SCHED_07,
        {"allocate": changes.one_token_more},
        f"{VLLM}/pull/11186",
    ),
    _fault(
        "hit-by-guess",
        "a prompt begins behind what it has in common with one that runs",
        spec.SCHED_07,
        {"allocate": changes.hit_by_guess},
        f"{METAL}/eb49908",
    ),
    _fault(
        "blocks-of-the-admission",
        "chunks name the blocks that their request was admitted with",
        spec.SCHED_08,
        {"allocate": changes.blocks_of_the_prompt, "chunk": changes.shows_the_first_blocks},
        f"{NANO}/commit/82f5ca2",
    ),
    _fault(
        "no-block-at-the-edge",
        "a token that begins a block has none",
        spec.SCHED_08,
        {"makes_room": changes.not_at_the_edge},
        f"{VLLM}/pull/7380",
    ),
    _fault(
        "short-where-others-give-way",
        "a prompt's chunk is a block short in a step in which another request gives way",
        spec.SCHED_08,
        {"schedule": changes.short_where_others_give_way},
        TIRED,
    ),
    _fault(
        "computes-hits",
        "what is cached is computed again, into blocks that others read",
        spec.SCHED_08,
        {"allocate": changes.computes_hits},
        "PROPERTIES PC8",
    ),
    _fault(
        "computes-hits-again",
        "a preempted request computes what is cached again, into blocks that others read",
        spec.SCHED_08,
        {"allocate": changes.computes_hits_again},
        f"{VLLM}/pull/36859 (hits are counted at the first admission alone)",
    ),
)


STEPS_WITHOUT_UPDATES: tuple[Fault, ...] = (
    _fault(
        "computed-when-scheduled",
        "what a void step was to compute is left out",
        spec.SCHED_28,
        {"schedule": changes.computed_when_scheduled},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "busy-for-ever",
        "requests of a void step have to wait for its update",
        spec.SCHED_28,
        {"schedule": changes.busy_for_ever},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "back-with-the-update",
        "who was preempted for a void step is lost with it",
        spec.SCHED_28,
        {"schedule": changes.back_with_the_update, "update": changes.brings_back},
        "PROPERTIES X9",
    ),
    _fault(
        "lost-with-the-step",
        "prompts of a void step are dropped",
        spec.SCHED_28,
        {"schedule": changes.lost_with_the_step},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "generating-when-scheduled",
        "of a prompt whose last chunk was void only the last token is computed",
        spec.SCHED_28,
        {"schedule": changes.generating_when_scheduled},
        "PROPERTIES X9",
    ),
    _fault(
        "newest-id-hit",
        "a block is hit when its last id is known and not computed yet",
        spec.SCHED_29,
        {"advance": changes.marks_the_newest},
        "PROPERTIES PC5",
    ),
    _fault(
        "void-decodes-hit",
        "ids that a void step was to compute are hit",
        spec.SCHED_29,
        {"schedule": changes.marks_void_decodes},
        "PROPERTIES PC5",
    ),
    _fault(
        "hit-when-scheduled",
        "what is handed out can be hit before it is computed",
        spec.SCHED_29,
        {"schedule": changes.marked_when_scheduled},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "hit-when-admitted",
        "a prompt can be hit as soon as it has blocks",
        spec.SCHED_29,
        {"allocate": changes.marked_when_admitted},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "hit-at-the-first-chunk",
        "a prompt's first chunk has all of it hit",
        spec.SCHED_29,
        {"mark": changes.marks_the_table},
        f"{NANO}/commit/f64d821",
    ),
    _fault(
        "64-chunks",
        "a request whose prompt takes more than 64 steps is finished as it is",
        spec.SCHED_24,
        {"advance": changes.gives_up_after_64_chunks},
        TIRED,
    ),
    _fault(
        "hit-when-cancelled",
        "a cancelled prompt is hit, computed or not",
        spec.SCHED_29,
        {"cancel": changes.marked_when_cancelled},
        f"{VLLM}/issues/49377",
    ),
)
