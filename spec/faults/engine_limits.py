"""Limits and ends of requests, missed or seen where there are none."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine_limits as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import COURSE
from inferspec.spec.faults.sources import TIRED

_JOB = "PROPERTIES CB4"

_fault = named("engine")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "one-too-many",
        "an id more than max_tokens comes out",
        spec.ENG_13,
        {"most": changes.one_too_many},
        "PROPERTIES CB3",
    ),
    _fault(
        "end-past-the-limit",
        "an end-of-sequence id that would come just after max_tokens ids takes the last of them with it",
        spec.ENG_13,
        {"emit": changes.ends_past_the_limit},
        "https://github.com/ml-explore/mlx-lm/issues/226",
    ),
    _fault(
        "guesses-past-the-limit",
        "guesses past max_tokens come out where one of them ends the request",
        spec.ENG_13,
        {
            "most_guesses": changes.guesses_past_the_limit,
            "settle": changes.limit_where_nothing_ends,
            "most": changes.most_unless_it_ends,
        },
        TIRED,
    ),
    _fault(
        "none-gives-one",
        "an id comes out where none is asked for",
        spec.ENG_13,
        {"at_once": changes.never_at_once},
        "PROPERTIES CB3",
    ),
    _fault(
        "end-comes-out",
        "the id that ends a request comes out",
        spec.ENG_14,
        {"emit": changes.comes_out},
        "PROPERTIES CB3",
    ),
    _fault(
        "one-after-the-end",
        "the id after the one that ends a request comes out: its step was on its way already",
        spec.ENG_14,
        {"emit": changes.one_after_the_end},
        "the kind of engines that launch a step before they have read the last one",
    ),
    _fault(
        "ends-with-the-prompt",
        "an end-of-sequence id in the prompt ends the request",
        spec.ENG_14,
        {"stops": changes.ends_with_the_prompt},
        "PROPERTIES CB3",
    ),
    _fault(
        "ends-of-the-last",
        "a request that no id ends is ended by those of the request before it",
        spec.ENG_14,
        {"add": changes.ends_of_the_last},
        _JOB,
    ),
    _fault(
        "ends-of-the-prompt",
        "a prompt that was answered before is ended by the ids that ended it then",
        spec.ENG_14,
        {"add": changes.ends_of_the_prompt, "end": changes.keeps_its_ends},
        "PROPERTIES X7",
    ),
    _fault(
        "first-of-the-ends",
        "of several ids only the first ends a request",
        spec.ENG_14,
        {"stops": changes.first_of_them},
        _JOB,
    ),
    _fault(
        "four-ends-alone",
        "of many ids only the first four end a request",
        spec.ENG_14,
        changes.first_ends(4),
        TIRED,
    ),
    _fault(
        "ends-of-the-first-16",
        "ids behind the 16th end nothing",
        spec.ENG_14,
        {"stops": changes.of_the_first_16},
        TIRED,
    ),
    _fault(
        "id-0-no-end",
        "the id 0 never ends a request",
        spec.ENG_14,
        {"stops": changes.zero_is_none},
        "an id that is tested bare",
    ),
    _fault(
        "first-id-no-end",
        "the id that comes of the prompt is never an end",
        spec.ENG_15,
        {"stops": changes.not_at_first},
        "PROPERTIES CB3",
    ),
    _fault(
        "fails-at-the-first",
        "a step raises when a request's first id ends it",
        spec.ENG_15,
        {"stops": changes.fails_at_first},
        "the course's batch loop",
    ),
    _fault(
        "lost-at-the-first",
        "a request that ends without an id keeps its place for ever",
        spec.ENG_20,
        {"end": changes.lost_at_first},
        f"{COURSE}/05972ff",
    ),
)


MANY_ENDS: tuple[Fault, ...] = (
    _fault(
        "eight-ends-alone",
        "of many ids only the first eight end a request",
        spec.ENG_14,
        changes.first_ends(8),
        TIRED,
    ),
    _fault(
        "32-ends-alone",
        "of many ids only the first 32 end a request",
        spec.ENG_14,
        changes.first_ends(32),
        TIRED,
    ),
)
