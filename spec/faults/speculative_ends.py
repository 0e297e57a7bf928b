"""Mistakes of speculative decoding in where the ids end: at an end-of-sequence id, and at the limit."""

from __future__ import annotations

from inferspec.spec.changes import speculative_ends as changes
from inferspec.spec.contract import Change, Fault
from inferspec.spec.ends import KEEPING
from inferspec.spec.faults.speculative_sources import TIRED
from inferspec.spec.speculative_sentences import (
    SPEC_26,
    SPEC_27,
)


def _kept(name: str, text: str, change: Change) -> Fault:
    """A mistake of who keeps the id that ends the ids."""
    return Fault(f"speculative-kept-end-{name}", text, SPEC_26, change, TIRED, KEEPING)


KEPT_ENDS: tuple[Fault, ...] = (
    Fault(
        "speculative-end-without-drafts-emitted",
        "the end-of-sequence id comes out where num_draft_tokens is 0",
        SPEC_26,
        {"ids": changes.keeps_the_end_without_drafts},
        TIRED,
    ),
    Fault(
        "speculative-late-end-emitted",
        "an end-of-sequence id comes out that follows a dozen ids",
        SPEC_26,
        {"stops": changes.keeps_a_late_end},
        TIRED,
    ),
    Fault(
        "speculative-eos-of-the-first-64",
        "ids behind the 64th end nothing",
        SPEC_26,
        {"stops": changes.of_the_first_64},
        TIRED,
    ),
    Fault(
        "speculative-six-looked-at",
        "ids behind the sixth of a round do not end the ids",
        SPEC_26,
        {"shown": changes.begins_to_count, "stops": changes.six_looked_at},
        TIRED,
    ),
    Fault(
        "speculative-end-of-the-second-emitted",
        "of a second request to the same models the end-of-sequence id comes out",
        SPEC_26,
        {"begin": changes.keeps_the_end_of_the_second},
        TIRED,
    ),
    _kept("dropped", "the end-of-sequence id does not come out", {"ids": changes.drops_the_end}),
    _kept(
        "dropped-when-drafted",
        "an end-of-sequence id comes out where it is the last of a round's ids alone",
        {"ids": changes.drops_an_end_that_was_drafted},
    ),
    _kept("twice", "the end-of-sequence id comes out twice", {"ids": changes.keeps_the_end_twice}),
    _kept(
        "and-its-round",
        "the ids of its round come out after the end-of-sequence id",
        {"ids": changes.keeps_what_was_drafted},
    ),
    _kept(
        "past-the-limit",
        "an end-of-sequence id that a round has just past the limit comes out",
        {"count": changes.overruns, "shown": changes.keeps_the_end_past_the_limit},
    ),
)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "speculative-eos-of-the-last-alone",
        "only the last id of a round can end the ids",
        SPEC_26,
        {"ids": changes.looks_at_the_last},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-end-first-in-the-list",
        "of several ends in a round that ends the ids which is listed first, though another comes before it",
        SPEC_26,
        {"shown": changes.round_noted, "stops": changes.first_in_the_list},
        "https://github.com/huggingface/smolagents/issues/2780",
    ),
    Fault(
        "speculative-last-end-of-a-round",
        "of several ends in a round the last one ends the ids",
        SPEC_26,
        {"shown": changes.round_noted, "stops": changes.last_of_a_round},
        "https://github.com/huggingface/smolagents/issues/2780",
    ),
    Fault(
        "speculative-endless-when-drawn",
        "above temperature 0 nothing ends the ids but the limit",
        SPEC_26,
        {"stops": changes.endless_when_drawn},
        TIRED,
    ),
    Fault(
        "speculative-emits-eos",
        "the end-of-sequence id comes out",
        SPEC_26,
        {"ids": changes.emits_the_end},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-goes-on-past-the-end",
        "an iterator that came to its end gives an id when it is asked again",
        SPEC_26,
        {"ids": lambda self, run: changes.GoesOn(self, run)},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-eos-drops-the-run",
        "a round with an end of sequence in it gives none of its ids",
        SPEC_26,
        {"shown": changes.drops_the_run},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-eos-ignored",
        "nothing ends the ids but the limit, as where eos is taken for an id and not for a collection of them",
        SPEC_26,
        {"stops": lambda self, run, token: False},
        TIRED,
    ),
    Fault(
        "speculative-first-eos-alone",
        "of several end-of-sequence ids only the first counts",
        SPEC_26,
        {"stops": changes.first_end_alone},
        "config.json of Llama 3 and Qwen3 has lists",
    ),
    Fault(
        "speculative-eos-not-0",
        "the id 0 never ends the ids",
        SPEC_26,
        {"stops": changes.zero_is_none},
        "an id that is tested bare",
    ),
    Fault(
        "speculative-eos-modulo-16-bits",
        "ids are compared with end-of-sequence ids in 16 bits",
        SPEC_26,
        {"stops": changes.ends_modulo_2_to_16},
        "PROPERTIES X8",
    ),
    Fault(
        "speculative-32-eos-alone",
        "of many end-of-sequence ids only the first 32 count",
        SPEC_26,
        {"stops": changes.first_ends_alone(32)},
        "https://github.com/InternLM/lmdeploy/issues/3233",
    ),
    Fault(
        "speculative-256-eos-alone",
        "of hundreds of end-of-sequence ids only the first 256 count",
        SPEC_26,
        {"stops": changes.first_ends_alone(256)},
        "https://github.com/InternLM/lmdeploy/issues/3233",
    ),
    Fault(
        "speculative-overruns",
        "the limit is looked at between rounds: whole rounds come out",
        SPEC_27,
        {"ids": changes.whole_rounds},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-zero-refused",
        "a uniform number of 0 is taken for one outside its range",
        SPEC_27,
        {"check_number": changes.above_zero},
        TIRED,
    ),
    Fault(
        "speculative-drops-what-is-past",
        "a round that would pass the limit gives nothing",
        SPEC_27,
        {"ids": changes.drops_what_is_past},
        "PROPERTIES SP5",
    ),
    Fault(
        "speculative-stops-repeating",
        "an id that came more than thirty times in a row ends the ids",
        SPEC_27,
        {"ids": changes.stops_repeating},
        "https://github.com/ollama/ollama/pull/3080 (on purpose); ollama 14117",
    ),
    Fault(
        "speculative-one-for-none", "an id comes out for max_tokens=0", SPEC_27, {"ids": changes.one_for_none}, TIRED
    ),
)
