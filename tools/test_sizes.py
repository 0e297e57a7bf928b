"""Are the suites' inputs as large, as ragged and as many at once as what mistakes depend on?

Who narrows a strategy, or takes a test away, is told here what nobody asks any more: a kernel has another path past so many rows,
a buffer has room for so many requests, and a mistake behind it is as good as unknown when nothing larger is drawn. Each row was
a hole once, or is where kernels change path. The tests of few examples are drawn first and most rows need no others, so that
this takes a few seconds by itself; beside `test_inputs.py`, in the same process, next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest

from inferspec.conformance.calls import Call
from inferspec.tools.drawn_inputs import argument_of, asked

SIZES: tuple[tuple[str, str, int, int], ...] = (
    ("linear", "x", -1, 8000),
    ("linear", "x", -2, 2**16),
    ("linear", "weight", -2, 2**15),
    ("silu", "x", -1, 2**16),
    ("softmax", "x", -1, 2**16),
    ("softmax", "x", -2, 2**16),
    ("scaled_dot_product_attention", "query", -1, 192),
    ("scaled_dot_product_attention", "query", -2, 512),
    ("scaled_dot_product_attention", "query", -3, 64),
    ("scaled_dot_product_attention", "query", -4, 2**15),
    ("scaled_dot_product_attention", "key", -2, 2048),
    ("scaled_dot_product_attention", "key", -3, 24),
    ("MultiHeadAttention", "query", -1, 256),
    ("MultiHeadAttention", "query", -2, 512),
    ("MultiHeadAttention", "query", -3, 8),
    ("flash_attention", "query", -1, 192),
    ("flash_attention", "query", -2, 256),
    ("flash_attention", "query", -3, 32),
    ("flash_attention", "query", -4, 8),
    ("flash_attention", "key", -2, 2**16),
    ("flash_attention", "key", -3, 12),
    ("paged_attention", "query", -1, 192),
    ("paged_attention", "query", -2, 256),
    ("paged_attention", "query", -3, 32),
    ("paged_attention", "query", -4, 64),
    ("paged_attention", "block_table", -1, 4096),
    ("paged_attention", "key_pages", -2, 128),
    ("paged_attention", "key_pages", -3, 32),
    ("paged_attention", "key_pages", -4, 2**16),
    ("RoPE", "x", -1, 192),
    ("RoPE", "x", -2, 128),
    ("RoPE", "x", -3, 4096),
    ("RoPE", "x", -4, 8192),
    ("RMSNorm", "x", -1, 8000),
    ("RMSNorm", "x", -2, 2**16),
    ("SwiGLU", "x", -2, 512),
    ("SwiGLU", "w_gate", -2, 4000),
    ("Embedding", "tokens", -1, 2**16),
    ("Embedding", "weight", -1, 4000),
    ("Embedding", "weight", -2, 150_000),
    ("Embedding.as_linear", "x", -2, 128),
    ("quantize", "w", -1, 4096),
    ("quantize", "w", -2, 2**15),
    ("dequantize", "packed", -2, 2**15),
    ("quantized_matmul", "x", -1, 2**15),
    ("quantized_matmul", "x", -2, 2**15),
    ("quantized_matmul", "packed", -2, 2**15),
    ("QuantizedLinear", "x", -1, 8000),
    ("QuantizedLinear", "x", -2, 128),
    ("QuantizedEmbedding", "tokens", -1, 4096),
    ("QuantizedEmbedding", "packed", -2, 2**16),
    ("QuantizedEmbedding.as_linear", "x", -1, 8000),
    ("KVCache", "key", -1, 128),
    ("KVCache", "key", -2, 2**15),
    ("KVCache", "key", -3, 32),
    ("KVCache", "key", -4, 8),
    ("StaticKVCache", "key", -2, 2**15),
    ("StaticKVCache", "key", -3, 32),
    ("BatchingKVCache", "key", -2, 512),
    ("BatchingKVCache", "key", -3, 32),
    ("BatchingKVCache", "key", -4, 32),
    ("PagedKVCache", "key", -2, 2**16),
    ("PagedKVCache", "key", -3, 32),
    ("filter_logits", "logits", -1, 150_000),
    ("filter_logits", "logits", -2, 256),
    ("Sampler", "logits", -1, 150_000),
    ("Sampler", "logits", -2, 256),
    ("verify", "target_probs", -1, 150_000),
    ("verify", "target_probs", -2, 8),
    ("Llama", "tokens", -1, 256),
    ("Llama", "tokens", -2, 8),
    ("Qwen3", "tokens", -1, 256),
    ("Qwen3", "tokens", -2, 8),
)
"""Operation, argument, axis, and the size past which at least one draw has to be: kernels change path there, tables and
threadgroups end, counters of 16 bits too."""


@pytest.mark.parametrize(("operation", "argument", "axis", "size"), SIZES)
def test_sizes_go_past_where_kernels_change_path(operation: str, argument: str, axis: int, size: int) -> None:
    assert any(one > size for call in asked(operation) for one in along(argument, axis)(call))


Sizes = Callable[[Call], Iterator[int]]
"""What of a call is counted: for each of several arrays or requests, say."""


def along(argument: str, axis: int) -> Sizes:
    """An axis of an array."""

    def of(call: Call) -> Iterator[int]:
        for path, x in call.leaves().items():
            if argument_of(path) == argument and x.ndim >= -axis:
                yield x.shape[axis]

    return of


def rows(argument: str) -> Sizes:
    """The rows of an array, of all its leading axes together."""

    def of(call: Call) -> Iterator[int]:
        yield math.prod(call.arguments[argument].shape[:-1])

    return of


def single_tokens(argument: str) -> Sizes:
    """The sequences of an array B×1×E, or B×1×H×D, that have one token each, as when all decode."""

    def of(call: Call) -> Iterator[int]:
        x = call.arguments[argument]
        if x.ndim >= 3 and x.shape[1] == 1:
            yield x.shape[0]

    return of


def ragged(sizes: Sizes, tile: int) -> Sizes:
    """Those that are no whole tiles."""
    return lambda call: (size for size in sizes(call) if size % tile)


def whole(sizes: Sizes, tile: int) -> Sizes:
    """Those that are whole tiles."""
    return lambda call: (size for size in sizes(call) if size % tile == 0)


def of_views(argument: str, axis: int) -> Sizes:
    """An axis of an array where it lies in memory as a view: a size and a view met in one call."""

    def of(call: Call) -> Iterator[int]:
        for path, x in call.leaves().items():
            if call.views.get(path) and argument_of(path) == argument and x.ndim >= -axis:
                yield x.shape[axis]

    return of


def after_a_rewind(argument: str, axis: int) -> Sizes:
    """An axis of an array that a story brings after a rewind."""

    def of(call: Call) -> Iterator[int]:
        steps = call.arguments["steps"]
        first = next((number for number, (step, _) in enumerate(steps) if step == "rewind"), len(steps))
        yield from (given[argument].shape[axis] for _, given in steps[first:] if argument in given)

    return of


def pages_of_rewound(call: Call) -> Iterator[int]:
    """Slots of a page, where a cache is rewound."""
    if any(step == "rewind" for step, _ in call.arguments["steps"]):
        yield call.arguments["page_size"]


def several_queries(call: Call) -> Iterator[int]:
    """Rows of a batch of which each has more than one query."""
    rows, _, queries, _ = call.arguments["query"].shape
    if queries > 1:
        yield rows


def length(argument: str) -> Sizes:
    """How much a list or an array of one axis holds."""
    return lambda call: iter([len(call.arguments[argument])])


def number(argument: str) -> Sizes:
    return lambda call: iter([call.arguments[argument]])


def of_config(name: str) -> Sizes:
    return lambda call: iter([call.arguments["config"][name]])


def past_training(call: Call) -> Iterator[int]:
    """Positions past those that a scaled RoPE says the model was trained on."""
    config = call.arguments["config"]
    for place in ("rope_parameters", "rope_scaling"):
        if trained := (config.get(place) or {}).get("original_max_position_embeddings"):
            yield call.arguments["tokens"].shape[-1] - trained


# stories of requests


def requests(call: Call) -> list[Any]:
    """What was asked for, request by request."""
    return [given for step, given in call.arguments["steps"] if step == "add"]


def at_once(call: Call) -> Iterator[int]:
    """How many requests run: those that come one after the other, as far as they may."""
    runs = [len(list(run)) for step, run in groupby(step for step, _ in call.arguments["steps"]) if step == "add"]
    yield min(max(runs, default=0), call.arguments["max_requests"])


def with_ends(call: Call) -> Iterator[int]:
    """The same where some have ids that end them."""
    return at_once(call) if any(given.get("eos") for given in requests(call)) else iter(())


def short_of_pages(call: Call) -> Iterator[int]:
    """The same where there are no pages for a second token of each."""
    a = call.arguments
    ends = [len(given["tokens"]) + 1 for given in requests(call)]
    needed = sum(-(-end // a["page_size"]) for end in ends)
    return at_once(call) if needed > a["num_pages"] else iter(())


def ids(call: Call) -> Iterator[int]:
    return (given["max_tokens"] for given in requests(call))


def prompts(call: Call) -> Iterator[int]:
    return (len(given["tokens"]) for given in requests(call))


def pages(call: Call) -> Iterator[int]:
    """Pages that a prompt fills."""
    return (size // call.arguments["page_size"] for size in prompts(call))


def guesses(call: Call) -> Iterator[int]:
    if call.arguments["draft"]:
        yield call.arguments["num_draft_tokens"]


@dataclass(frozen=True)
class Asked:
    """Of a requirement, or an operation, some call has a size past one, and up to another."""

    of: str
    what: str
    sizes: Sizes
    past: int
    upto: int = 2**63

    def __str__(self) -> str:
        return f"{self.of}: {self.what}, past {self.past}"


ASKED = (
    # Rows, and many sequences of one token each: a matrix-vector product for each of them, or one product of all.
    Asked("linear", "sequences of one token", single_tokens("x"), 128),
    Asked("linear", "no whole tiles of rows", ragged(rows("x"), 64), 64),
    Asked("linear", "whole tiles of rows", whole(rows("x"), 64), 64),
    Asked("silu", "rows", rows("x"), 256),
    Asked("RMSNorm", "sequences of one token", single_tokens("x"), 128),
    Asked("SwiGLU", "sequences of one token", single_tokens("x"), 128),
    Asked("quantized_matmul", "sequences of one token", single_tokens("x"), 32),
    Asked("Embedding", "sequences of one token", along("tokens", -2), 32),
    Asked("RoPE", "sequences of one token", single_tokens("x"), 128),
    Asked("scaled_dot_product_attention", "some sequences", along("query", -4), 9, 129),
    Asked("scaled_dot_product_attention", "ragged keys", ragged(along("key", -2), 128), 512),
    Asked("MultiHeadAttention", "rows of a batch", along("query", -3), 32),
    Asked("flash_attention", "ragged keys", ragged(along("key", -2), 128), 512),
    Asked("flash_attention", "key heads", along("key", -3), 16),
    Asked("paged_attention", "sequences", along("query", -4), 64),
    Asked("KVCache", "rows of a batch", along("key", -4), 128),
    Asked("StaticKVCache", "rows of a batch", along("key", -4), 128),
    Asked("BatchingKVCache", "slots", number("max_requests"), 32),
    Asked("PagedKVCache", "features of a head", number("head_dim"), 128),
    Asked("Sampler", "rows", rows("logits"), 2**16),
    # Two things at once: a size and a view, a rewind, a NaN, several queries.
    Asked("RMS-16", "features", along("x", -1), 128, 511),
    Asked("PAGED-13", "rows of drafts", several_queries, 4, 64),
    Asked("KV-07", "features of views", of_views("key", -1), 64),
    Asked("KV-07", "heads of views", of_views("key", -3), 8),
    Asked("KV-07", "rows of views", of_views("key", -4), 32),
    Asked("KV-12", "features after a rewind", after_a_rewind("key", -1), 64),
    Asked("KV-12", "rows after a rewind", after_a_rewind("key", -4), 32),
    Asked("SKV-12", "heads after a rewind", after_a_rewind("key", -3), 8),
    Asked("KV-20", "rows", along("key", -4), 32),
    Asked("KV-09", "tokens", along("key", -2), 64),
    Asked("BATCH-04", "slots", number("max_requests"), 32),
    Asked("BATCH-05", "slots", number("max_requests"), 32),
    Asked("BATCH-05", "features", along("key", -1), 64),
    Asked("BATCH-14", "slots of views", of_views("key", -4), 8),
    Asked("BATCH-14", "features of views", of_views("key", -1), 64),
    Asked("BATCH-14", "tokens of views", of_views("key", -2), 16),
    Asked("PKV-12", "slots of a page, rewound", pages_of_rewound, 32),
    Asked("PKV-26", "slots of a page", number("page_size"), 32),
    Asked("PKV-26", "features of views", of_views("key", -1), 64),
    Asked("MHA-06", "heads", number("num_heads"), 8),
    # Whole models.
    Asked("LLAMA-12", "sequences", along("tokens", -2), 32),
    Asked("QWEN3-12", "sequences", along("tokens", -2), 32),
    Asked("LLAMA-01", "tokens", along("tokens", -1), 256),
    Asked("QWEN3-01", "tokens", along("tokens", -1), 256),
    Asked("LLAMA-09", "layers", of_config("num_hidden_layers"), 10),
    Asked("QWEN3-09", "layers", of_config("num_hidden_layers"), 10),
    Asked("LLAMA-15", "ids", of_config("vocab_size"), 2**16),
    Asked("LLAMA-34", "positions past training", past_training, 64),
    Asked("LLAMA-35", "positions past training", past_training, 32),
    Asked("QWEN3-34", "positions past training", past_training, 64),
    Asked("QWEN3-35", "positions past training", past_training, 32),
    # Generation, and speculation.
    Asked("GEN-04", "tokens of a prompt", length("tokens"), 4096),
    Asked("GEN-05", "ids", number("max_tokens"), 1024),
    Asked("SPEC-05", "drafts", length("draft_tokens"), 64),
    Asked("SPEC-23", "ids", number("max_tokens"), 64),
    Asked("SPEC-24", "drafts", number("num_draft_tokens"), 32),
    Asked("SPEC-32", "tokens of a prompt", length("tokens"), 1024),
    Asked("SPEC-36", "drafts above temperature 0", number("num_draft_tokens"), 32),
    Asked("SPEC-36", "ids to draw from", lambda call: iter([call.arguments["target"].get("vocab_size", 0)]), 2048),
    Asked("METR-03", "tokens", length("token_times"), 1000),
    Asked("METR-21", "requests", length("arrivals"), 1000),
    # Schedulers and engines, sentence by sentence: what is right of a few requests may be wrong of many.
    Asked("SCHED-13", "requests at once", at_once, 32),
    Asked("SCHED-24", "requests", lambda call: iter([len(requests(call))]), 100),
    Asked("ENG-01", "requests at once", at_once, 256),
    Asked("ENG-01", "tokens of a prompt", prompts, 1024),
    Asked("ENG-05", "requests at once", short_of_pages, 16),
    Asked("ENG-08", "pages of a prompt", pages, 32),
    Asked("ENG-09", "ids", ids, 32),
    Asked("ENG-10", "requests at once", at_once, 32),
    Asked("ENG-10", "guesses", guesses, 32),
    Asked("ENG-11", "requests at once", at_once, 32),
    Asked("ENG-11", "guesses", guesses, 16),
    Asked("ENG-13", "ids", ids, 256),
    Asked("ENG-14", "requests at once", with_ends, 32),
    Asked("ENG-17", "requests at once", at_once, 256),
    Asked("ENG-23", "requests at once", at_once, 16),
    Asked("ENG-24", "requests at once", at_once, 16),
    Asked("ENG-25", "requests at once", at_once, 16),
    Asked("ENG-32", "requests at once", at_once, 64),
    Asked("ENG-36", "requests at once", at_once, 32),
    Asked("ENG-37", "requests at once", at_once, 16),
    Asked("ENG-41", "guesses", guesses, 32),
    Asked("ENG-42", "requests at once", at_once, 32),
)


@pytest.mark.parametrize("row", ASKED, ids=str)
def test_what_mistakes_depend_on_is_asked(row: Asked) -> None:
    assert any(row.past < size <= row.upto for call in asked(row.of) for size in row.sizes(call)), row
