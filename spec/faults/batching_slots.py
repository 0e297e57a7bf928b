"""Mistakes of batches with slots that are idle or change hands, and with requests that come and go."""

from __future__ import annotations

from inferspec.spec import batching as spec
from inferspec.spec.changes import batching as changes
from inferspec.spec.changes import batching_masks as masks
from inferspec.spec.contract import Fault
from inferspec.spec.faults.batching_sources import TINY_LLM, TIRED, VLLM_METAL
from inferspec.spec.faults.defining import named

_fault = named("batching")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "idle-as-given",
        "what an idle slot is given stands in its row",
        spec.BATCH_05,
        {"idle": masks.idle_as_given},
        "PROPERTIES BK5",
    ),
    _fault(
        "idle-as-given-in-chunks",
        "what an idle slot is given stands in its row where a step has more than eight tokens",
        spec.BATCH_05,
        {"idle": masks.idle_as_given_in_chunks},
        TIRED,
    ),
    _fault(
        "padding-of-nan",
        "padding is memory that was never written",
        spec.BATCH_05,
        {"padding": masks.nan_padding},
        "PROPERTIES BK5",
    ),
    _fault(
        "stale-padding",
        "a request's padding is the tokens of the one before",
        spec.BATCH_05,
        changes.stale("taken"),
        "PROPERTIES BK3, BK5",
    ),
    _fault(
        "stale-idle",
        "an idle slot keeps the tokens of the request that left",
        spec.BATCH_05,
        changes.stale("idle"),
        "PROPERTIES BK5",
    ),
    _fault(
        "cleared-by-product",
        "a slot is cleared by a product with 0",
        spec.BATCH_05,
        {"leave": changes.remembers_left, **changes.after(masks.multiplied)},
        "PROPERTIES PA2",
    ),
    _fault(
        "former-not-cleared",
        "a new request is appended to the one before",
        spec.BATCH_06,
        {"leave": changes.remembers_left, "enter": changes.joins_former},
        f"{VLLM_METAL}/b213b8b",
    ),
    _fault(
        "former-length",
        "a shorter request keeps the length of the one before",
        spec.BATCH_06,
        {"leave": changes.remembers_left, "enter": changes.keeps_former_length},
        "PROPERTIES BK3",
    ),
    _fault(
        "former-values",
        "a slot's values are those of the request before",
        spec.BATCH_06,
        {"leave": changes.remembers_left, "enter": changes.values_of_former},
        f"{TINY_LLM}/05972ff",
    ),
    _fault(
        "values-of-padding",
        "values of requests shorter than the longest are taken for padding",
        spec.BATCH_07,
        changes.after(changes.short_values),
        "PROPERTIES BK1",
    ),
    _fault(
        "in-order-of-slots",
        "requests take the first rows, though slots before them are idle",
        spec.BATCH_07,
        {"store": changes.in_order_of_slots},
        "PROPERTIES CB1",
    ),
    _fault(
        "in-order-of-arrival",
        "requests take the rows in the order in which they came",
        spec.BATCH_07,
        {"enter": changes.remembers_arrival, "store": changes.in_order_of_arrival},
        "PROPERTIES CB1",
    ),
    _fault(
        "last-chunk-alone",
        "of a cache that was filled in several updates the tokens of the last one alone are taken",
        spec.BATCH_01,
        {"filled": changes.last_chunk_alone},
        TIRED,
    ),
    _fault(
        "known-by-first-chunk",
        "a cache is known by the first tokens that were put into it: of two that begin alike the first is taken twice",
        spec.BATCH_08,
        {"filled": changes.known_by_first_chunk},
        TIRED,
    ),
    _fault(
        "resumes-by-prompt",
        "a request with the prompt of one that left goes on where that one ended",
        spec.BATCH_08,
        {"leave": changes.remembers_prompts, "enter": changes.resumes},
        TIRED,
    ),
    _fault(
        "known-by-prompt",
        "of a request with the prompt of one that left the values are the last ones that that one had",
        spec.BATCH_08,
        {"leave": changes.remembers_prompts, "enter": changes.values_of_the_known},
        TIRED,
    ),
    _fault(
        "slot-0-stays",
        "a request never leaves slot 0, whose number is tested bare",
        spec.BATCH_08,
        {"leave": masks.slot_0_stays},
        TIRED,
    ),
    _fault(
        "last-moves-up",
        "the last request moves into a slot that is left",
        spec.BATCH_08,
        {"leave": changes.compacts},
        "PROPERTIES CB4",
    ),
    _fault(
        "all-leave",
        "a request that leaves takes the tokens of all with it",
        spec.BATCH_08,
        {"leave": changes.empties_all},
        "PROPERTIES BK3",
    ),
    _fault(
        "filled-up",
        "a shorter prompt is filled up with zeros that count as tokens",
        spec.BATCH_08,
        {"enter": changes.padding_becomes_tokens},
        "PROPERTIES BK1",
    ),
    _fault(
        "cut-to-the-others",
        "a longer prompt loses its first tokens",
        spec.BATCH_08,
        {"enter": changes.cut_to_the_others},
        "PROPERTIES BK4",
    ),
    _fault(
        "longer-clears",
        "a longer prompt clears the other requests",
        spec.BATCH_08,
        {"enter": changes.longer_only_from_now},
        "PROPERTIES BK4",
    ),
    _fault(
        "empty-is-idle",
        "a request without a prompt is taken for an idle slot",
        spec.BATCH_09,
        {"enter": changes.empty_is_idle},
        "PROPERTIES BK4, SD5",
    ),
)
