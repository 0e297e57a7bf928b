"""Guesses of a draft, and what is kept of them."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_guesses as changes
from inferspec.spec.changes import engine_pages as pages
from inferspec.spec.changes.engine_drafts import with_a_draft
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import MLX_LM
from inferspec.spec.faults.sources import TIRED

_fault = named("engine")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "hits-a-page-fewer-with-a-draft",
        "with a draft the last page of what is hit is computed again",
        spec.ENG_53,
        with_a_draft({"hits": pages.last_hit_missed}),
        "https://github.com/vllm-project/vllm/issues/54360",
    ),
    _fault(
        "caches-less-by-its-guesses",
        "of what a step computed as many tokens are not cached as were guessed, right or wrong",
        spec.ENG_53,
        changes.less_by_guesses(),
        "https://github.com/vllm-project/vllm/pull/18668",
    ),
    _fault(
        "all-guesses-right",
        "all guesses count as right",
        spec.ENG_10,
        {"agreeing": changes.all_right},
        "https://github.com/huggingface/transformers/pull/28508",
    ),
    _fault(
        "right-in-any-place",
        "guesses that agree count, those behind a wrong one too",
        spec.ENG_10,
        {"agreeing": changes.right_in_any_place},
        "https://github.com/huggingface/transformers/pull/28508",
    ),
    _fault(
        "guesses-past-the-end",
        "a step raises where guesses that could not come out go past the model's positions",
        spec.ENG_10,
        {"guesses": changes.guesses_past_the_end},
        "PROPERTIES SP5, SC6",
    ),
    _fault(
        "positions-kept-for-guesses",
        "a request is refused for which the model has positions, and not for guesses behind its last id",
        spec.ENG_11,
        {"check": changes.positions_kept_for_guesses},
        "PROPERTIES SC4, SC6",
    ),
    _fault(
        "not-rewound",
        "wrong guesses stay in the pages",
        spec.ENG_10,
        {"committed": changes.not_rewound, "guesses": changes.notes_its_guesses},
        f"{MLX_LM}/f56d9971",
    ),
    _fault(
        "own-id-lost",
        "an id is lost where a guess is wrong",
        spec.ENG_10,
        changes.burst(changes.own_id_lost),
        "https://github.com/openvinotoolkit/openvino.genai/issues/4190",
    ),
    _fault(
        "draft-as-wide-as-the-model",
        "a draft whose keys are not as wide as the model's fails",
        spec.ENG_10,
        {"guesses": changes.heads_of_the_model},
        "one cache configuration for model and draft",
    ),
    _fault(
        "row-before",
        "the id after guesses that are all right is that of the row before",
        spec.ENG_11,
        changes.burst(changes.row_before),
        "https://github.com/openvinotoolkit/openvino.genai/issues/4190",
    ),
    _fault(
        "limit-after-the-burst",
        "max_tokens is looked at after all ids of a step",
        spec.ENG_13,
        {**changes.burst(changes.limit_at_the_end), "most_guesses": changes.as_many_as_ever},
        "PROPERTIES SP5",
    ),
    _fault(
        "end-of-the-burst",
        "only the last id of a step is looked at for an end",
        spec.ENG_14,
        changes.burst(changes.end_at_the_end),
        "PROPERTIES SP5",
    ),
    _fault(
        "end-first-in-the-list",
        "of several ends in a step that ends a request which is listed first, though another comes before it",
        spec.ENG_14,
        changes.looked_through(changes.as_listed),
        "https://github.com/huggingface/smolagents/issues/2780",
    ),
    _fault(
        "last-end-of-the-burst",
        "of several ends in a step the last one ends a request",
        spec.ENG_14,
        changes.looked_through(changes.last_first),
        "https://github.com/huggingface/smolagents/issues/2780",
    ),
    _fault(
        "guesses-stay",
        "when the draft fails its guesses stay behind the request's tokens",
        spec.ENG_25,
        {"guesses": changes.guesses_among_the_tokens},
        "PROPERTIES SP8",
    ),
    _fault(
        "draft-out-of-positions",
        "a step raises where a request goes past the draft's positions",
        spec.ENG_48,
        {"guesses": changes.draft_out_of_positions},
        "PROPERTIES SC4",
    ),
    _fault(
        "draft-misses-one",
        "where all guesses were right the last one is never fed to the draft",
        spec.ENG_41,
        {"rewound": changes.one_guess_unfed, "guesses": changes.notes_whole},
        "PROPERTIES SP4, SP9",
    ),
    _fault(
        "guesses-twice-as-many",
        "twice as many ids are guessed as are asked for",
        spec.ENG_41,
        {"most_guesses": changes.twice_as_many},
        TIRED,
    ),
    _fault(
        "never-guesses",
        "the draft is never asked",
        spec.ENG_41,
        {"most_guesses": changes.never_guesses},
        "PROPERTIES SP3",
    ),
    _fault(
        "never-guesses-once-failed",
        "a draft that failed is not asked any more",
        spec.ENG_41,
        {"guesses": changes.notes_that_the_draft_failed, "most_guesses": changes.none_once_failed},
        TIRED,
    ),
    _fault(
        "draft-misses-what-failed",
        "what the draft was to read in a step that failed is taken for read",
        spec.ENG_41,
        {"guesses": changes.noted_before_it_is_read},
        "PROPERTIES SP4, PG7",
    ),
    _fault(
        "never-guesses-once-preempted",
        "the draft is not asked any more for a request that was preempted",
        spec.ENG_41,
        {"preempt": changes.notes_who_is_preempted, "most_guesses": changes.none_once_preempted},
        "https://github.com/vllm-project/vllm/pull/31944",
    ),
    _fault(
        "draft-misses-hits",
        "what of a prompt is hit is not fed to the draft",
        spec.ENG_41,
        {"rewound": changes.hits_unfed, "start": pages.notes_the_hit},
        "PROPERTIES SP4, PC8",
    ),
    _fault(
        "draft-misses-hits-of-one-id",
        "what is hit of a request that asked for one id was not fed to the draft",
        spec.ENG_41,
        {"rewound": changes.hits_of_one_id_unfed, "start": pages.notes_the_hit},
        TIRED,
    ),
    _fault(
        "draft-misses-prompts-beside-others",
        "a prompt that is computed while others generate is not fed to the draft",
        spec.ENG_41,
        {"rewound": changes.prompt_unfed_beside},
        TIRED,
    ),
    _fault(
        "all-or-none",
        "of a run with a wrong guess in it the right ones are thrown away too",
        spec.ENG_44,
        {"agreeing": changes.all_or_none},
        TIRED,
    ),
    _fault(
        "draft-not-rewound",
        "the draft's memory keeps wrong guesses",
        spec.ENG_44,
        {"rewound": changes.draft_not_rewound},
        f"{MLX_LM}/f56d9971",
    ),
    _fault(
        "draft-keeps-a-lone-wrong-guess",
        "a wrong guess stays in the draft's memory where it is the last that the draft was fed",
        spec.ENG_44,
        {"rewound": changes.lone_guess_not_rewound},
        f"{MLX_LM}/f56d9971",
    ),
    _fault(
        "eight-guesses-looked-at",
        "guesses behind the eighth count as right where those before are",
        spec.ENG_10,
        {"agreeing": changes.eight_looked_at},
        TIRED,
    ),
    _fault(
        "draft-of-64-tokens",
        "the draft is fed no more than the last 64 tokens",
        spec.ENG_41,
        {"guesses": changes.draft_of_64},
        TIRED,
    ),
)
