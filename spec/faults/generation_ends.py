"""Mistakes in the loop of generation with where the ids end: at the limit, and at an end-of-sequence id."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from inferspec.spec.changes import generation_ends as changes
from inferspec.spec.contract import Fault, Requirement
from inferspec.spec.ends import KEEPING
from inferspec.spec.faults.generation_sources import SEEDS, TIRED
from inferspec.spec.generation import GEN_05, GEN_06, GEN_07, GEN_08


def _kept(name: str, text: str, kills: Requirement, ids: Callable[..., Iterator[Any]]) -> Fault:
    """A mistake of who keeps the id that ends the ids."""
    return Fault(f"generation-kept-end-{name}", text, kills, {"ids": ids}, TIRED, KEEPING)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "generation-one-too-few",
        "the last id is lost",
        GEN_05,
        {"limit": lambda self, request: max(request.max_tokens - 1, 0)},
        "https://github.com/skyzh/tiny-llm/commit/05972ff",
    ),
    Fault(
        "generation-one-too-many",
        "the limit is exclusive: one more id comes out",
        GEN_05,
        {"limit": lambda self, request: request.max_tokens + 1},
        "PROPERTIES CB3",
    ),
    Fault(
        "generation-at-most-256",
        "no more than 256 ids come out, the size of a buffer",
        GEN_05,
        {"limit": changes.at_most_256},
        TIRED,
    ),
    Fault(
        "generation-at-most-1000",
        "no more than 1000 ids come out",
        GEN_05,
        {"limit": lambda self, request: min(request.max_tokens, 1000)},
        "https://github.com/guidance-ai/guidance/issues/816",
    ),
    Fault(
        "generation-stops-repeating",
        "an id that came more than thirty times in a row ends the ids",
        GEN_05,
        {"ids": changes.stops_repeating},
        "https://github.com/ollama/ollama/pull/3080 (on purpose); ollama 14117",
    ),
    Fault(
        "generation-one-for-none",
        "the first id comes out although none was asked for",
        GEN_05,
        {"limit": changes.one_for_none},
        SEEDS,
    ),
    Fault(
        "generation-limit-with-prompt",
        "max_tokens counts the prompt too",
        GEN_05,
        {"limit": changes.counts_the_prompt},
        "https://github.com/mirage-project/mirage/issues/382 (the same confusion)",
    ),
    Fault(
        "generation-emits-eos",
        "the end-of-sequence id comes out",
        GEN_06,
        {"ids": changes.emits_the_end},
        "PROPERTIES CB3",
    ),
    Fault(
        "generation-eos-never-first",
        "the first id is not looked at: an end of sequence there goes on",
        GEN_06,
        {"stops": changes.end_counts_from_the_second},
        "the course's loop at an end of sequence as the first token",
    ),
    Fault(
        "generation-eos-at-the-limit",
        "the last id is not looked at: an end of sequence there comes out",
        GEN_06,
        {"stops": changes.limit_hides_the_end},
        TIRED,
    ),
    Fault(
        "generation-eos-not-every-eighth",
        "every eighth id, the last that one call makes, is not looked at",
        GEN_06,
        {"stops": changes.not_every_eighth},
        TIRED,
    ),
    Fault(
        "generation-eos-ignored",
        "nothing ends the ids but the limit, as where eos is taken for an id and not for a collection of them",
        GEN_06,
        {"stops": lambda self, token, request, number: False},
        TIRED,
    ),
    Fault(
        "generation-four-eos-alone",
        "of many end-of-sequence ids only the first four count",
        GEN_07,
        {"stops": changes.four_ends_alone},
        TIRED,
    ),
    Fault(
        "generation-eos-not-0",
        "the id 0 never ends the ids",
        GEN_06,
        {"stops": changes.zero_is_none},
        "an id that is tested bare",
    ),
    Fault(
        "generation-eos-modulo-16-bits",
        "ids are compared with end-of-sequence ids in 16 bits",
        GEN_06,
        {"stops": changes.ends_modulo_2_to_16},
        "PROPERTIES X8",
    ),
    Fault(
        "generation-32-eos-alone",
        "of many end-of-sequence ids only the first 32 count",
        GEN_07,
        {"stops": changes.first_ends_alone(32)},
        "https://github.com/InternLM/lmdeploy/issues/3233",
    ),
    Fault(
        "generation-256-eos-alone",
        "of hundreds of end-of-sequence ids only the first 256 count",
        GEN_07,
        {"stops": changes.first_ends_alone(256)},
        "https://github.com/InternLM/lmdeploy/issues/3233",
    ),
    Fault(
        "generation-eos-in-16-bits",
        "end-of-sequence ids are kept in 16 bits",
        GEN_06,
        {"stops": changes.ends_in_16_bits},
        "PROPERTIES X8",
    ),
    Fault(
        "generation-first-eos-alone",
        "of several end-of-sequence ids only the first counts",
        GEN_07,
        {"stops": changes.first_end_alone},
        "config.json of Llama 3 and Qwen3 has lists",
    ),
    Fault(
        "generation-last-eos-alone",
        "of several end-of-sequence ids only the last counts",
        GEN_07,
        {"stops": changes.last_end_alone},
        TIRED,
    ),
    Fault(
        "generation-list-of-eos-ignored",
        "an id is compared with the list of end-of-sequence ids, which it never equals",
        GEN_07,
        {"stops": changes.all_ends_needed},
        TIRED,
    ),
    Fault(
        "generation-eos-of-the-prompt",
        "stops are looked for in the prompt too",
        GEN_08,
        {"ids": changes.end_of_the_prompt},
        "PROPERTIES CB3",
    ),
    Fault(
        "generation-prompt-ends-at-eos",
        "the prompt is cut after its first end-of-sequence id",
        GEN_08,
        {"prompt": changes.prompt_cut_at_the_end},
        TIRED,
    ),
)


KEPT_ENDS: tuple[Fault, ...] = (
    Fault(
        "generation-end-of-the-second-emitted",
        "of a second request to one model the end-of-sequence id comes out",
        GEN_07,
        {"ids": changes.keeps_the_end_of_the_second},
        TIRED,
    ),
    _kept("dropped", "the end-of-sequence id does not come out", GEN_06, changes.drops_the_end),
    _kept(
        "dropped-at-the-limit",
        "an end-of-sequence id that is the last of max_tokens ids does not come out",
        GEN_06,
        changes.drops_an_end_at_the_limit,
    ),
    _kept(
        "dropped-as-the-first",
        "an end-of-sequence id that is the first id does not come out",
        GEN_06,
        changes.drops_a_first_end,
    ),
    _kept("twice", "the end-of-sequence id comes out twice", GEN_06, changes.keeps_the_end_twice),
    _kept(
        "past-the-limit",
        "the end-of-sequence id is not counted: it comes out after max_tokens ids",
        GEN_06,
        changes.keeps_the_end_past_the_limit,
    ),
    _kept("and-one-more", "one id comes out after the end-of-sequence id", GEN_06, changes.goes_on_for_one),
    _kept(
        "first-of-the-list",
        "whatever ends the ids, the first end-of-sequence id of the list comes out",
        GEN_07,
        changes.gives_the_first_end,
    ),
)
