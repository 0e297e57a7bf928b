"""What is forgotten in the loop of its own that draws ids, above temperature 0."""

from __future__ import annotations

from inferspec.spec.changes import speculative as changes
from inferspec.spec.changes import speculative_caches as caches
from inferspec.spec.changes import speculative_drawn as drawn
from inferspec.spec.changes import speculative_ends as ends
from inferspec.spec.contract import Change, Fault, Requirement
from inferspec.spec.faults.speculative_sources import MLX_LM, TIRED
from inferspec.spec.speculative_sentences import (
    SPEC_38,
    SPEC_40,
    SPEC_41,
    SPEC_42,
    SPEC_44,
    SPEC_47,
    SPEC_51,
    SPEC_52,
    SPEC_56,
    SPEC_57,
    SPEC_58,
)


def _drawn(name: str, text: str, kills: Requirement, change: Change, source: str = TIRED) -> Fault:
    return Fault(f"speculative-{name}-when-drawn", f"above temperature 0 {text}", kills, change, source)


FAULTS: tuple[Fault, ...] = (
    _drawn(
        "drafts-past-the-limit",
        "num_draft_tokens are drafted in the last round too",
        SPEC_38,
        drawn.when_drawn({"count": ends.overruns}),
        f"{MLX_LM}/issues/226 (a step too far)",
    ),
    _drawn(
        "a-round-too-far",
        "a round runs after the last id",
        SPEC_38,
        drawn.when_drawn({"ids": changes.one_round_more}),
        f"{MLX_LM}/issues/226 (a step too far)",
    ),
    _drawn(
        "holds-the-draft",
        "the draft's cache is kept in a table for ever",
        SPEC_40,
        drawn.when_drawn({"ids": changes.held_by("draft")}),
        "PROPERTIES SP8",
    ),
    _drawn(
        "holds-what-failed",
        "the caches of a request that ended by an error are kept",
        SPEC_40,
        drawn.when_drawn({"ids": changes.held_when_it_fails}),
        "PROPERTIES PG7, SP8",
    ),
    _drawn(
        "target-cache-shared",
        "one cache of the target serves all requests",
        SPEC_41,
        {**drawn.when_drawn({"begin": changes.target_shared}), "lacking": caches.fed_by_count},
        f"{MLX_LM}/commit/23af8570",
    ),
    _drawn(
        "temperature-of-the-last",
        "ids are drawn at the temperature of the request that came last",
        SPEC_41,
        drawn.of_the_last("temperature"),
        "PROPERTIES CB4",
    ),
    _drawn(
        "top-k-of-the-last",
        "ids are filtered as those of the request that came last",
        SPEC_41,
        drawn.of_the_last("top_k"),
        "PROPERTIES CB4",
    ),
    _drawn(
        "num-draft-tokens-of-the-last",
        "as many ids are drafted as for the request that came last",
        SPEC_41,
        drawn.of_the_last("num_draft_tokens"),
        "PROPERTIES CB4",
    ),
    _drawn(
        "sequence-left",
        "a request begins with what the last one left",
        SPEC_42,
        drawn.when_drawn({"begin": changes.sequence_shared}),
        "PROPERTIES SP8",
    ),
    _drawn(
        "list-grows",
        "ids are appended to the caller's list",
        SPEC_44,
        drawn.when_drawn({"ids": changes.list_grows}),
    ),
    _drawn(
        "reads-the-callers-tokens",
        "the prompt is read again for each round, as the caller has it by then",
        SPEC_57,
        drawn.when_drawn({"lacking": changes.reads_the_callers}),
    ),
    _drawn(
        "reads-the-callers-ends",
        "ends are looked up in the caller's list",
        SPEC_58,
        drawn.when_drawn({"taken": changes.callers_ends}),
    ),
    _drawn(
        "caches-unchecked",
        "what cannot be rewound is left as it is",
        SPEC_47,
        {**drawn.when_drawn({"begin": drawn.begins_unchecked}), "take_back": changes.rewinds_what_it_can},
        f"{MLX_LM}/pull/1109",
    ),
    _drawn(
        "empty-is-zero",
        "an empty prompt is taken for id 0",
        SPEC_51,
        drawn.when_drawn({"check_prompt": changes.nothing, "prompt": changes.begins_with_zero}),
        "PROPERTIES X9",
    ),
    _drawn(
        "no-limit",
        "a negative max_tokens is no limit",
        SPEC_52,
        drawn.when_drawn({"check_limit": changes.nothing, "ids": changes.no_limit}),
        f"{MLX_LM}, generate_step (documented there)",
    ),
    _drawn(
        "target-error-ends",
        "an error of the target ends the ids",
        SPEC_56,
        drawn.when_drawn({"ids": changes.an_error_ends}),
        "PROPERTIES CB2",
    ),
)
