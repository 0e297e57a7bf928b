"""The engine on trained weights: prompts of very different lengths, in little memory, whatever it is set to."""

import functools
import random

import mlx.core as mx
import pytest

from inferspec.golden.models import weights_of
from inferspec.impl.engine import Engine
from inferspec.impl.generation import generate
from inferspec.impl.loading import load
from inferspec.impl.transformer import Decoder
from inferspec.spec.numerics import unit_roundoff

PAGES = 96
"""Tokens that the pool has room for: two of the longest requests do not fit."""


@functools.cache
def model(name: str) -> Decoder:
    return load(weights_of(name))


def prompts() -> list[tuple[tuple[int, ...], int, int]]:
    """24 prompts of 1 … 60 tokens, the first part of many shared; how many tokens to generate, and the priority."""
    draw = random.Random(11)
    shared = [draw.randrange(512) for _ in range(48)]
    found = []
    for number in range(24):
        begin = shared[: draw.choice([0, 0, 8, 17, 33, 48])]
        own = [draw.randrange(512) for _ in range(draw.randint(1, 12))]
        found.append(((*begin, *own), draw.randint(1, 24), number % 3))
    return found


@functools.cache
def alone(tokens: tuple[int, ...], max_tokens: int) -> list[int]:
    return list(generate(model("tiny-qwen3"), tokens, max_tokens=max_tokens))


def is_output(ids: list[int], tokens: tuple[int, ...], expected: list[int]) -> bool:
    """Whether ids are those of `generate`, or part from them where two logits are neighbours in bfloat16.

    How many rows a product has decides in which order its sums are rounded, so that either of two such ids is right.
    """
    parted = next((i for i, (one, other) in enumerate(zip(ids, expected, strict=False)) if one != other), None)
    if parted is None:
        return ids == expected
    logits = model("tiny-qwen3")(mx.array([[*tokens, *expected[:parted]]]))[0, -1]
    ours, theirs = float(logits[ids[parted]]), float(logits[expected[parted]])
    return abs(theirs - ours) <= 2 * unit_roundoff("bfloat16") * abs(theirs)


@pytest.mark.parametrize("draft", [None, "tiny-qwen3-4bit"], ids=["alone", "speculative"])
@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("page", [1, 8, 16])
def test_every_output_is_that_of_generate_alone(page, chunk, draft):
    engine = Engine(
        model("tiny-qwen3"),
        num_pages=PAGES // page,
        page_size=page,
        max_requests=6,
        max_prefill_tokens=chunk,
        draft=model(draft) if draft else None,
    )
    requests = {engine.add_request(tokens, limit, priority): (tokens, limit) for tokens, limit, priority in prompts()}
    outputs = engine.run()
    assert outputs.keys() == requests.keys()
    for request, (tokens, limit) in requests.items():
        assert is_output(outputs[request], tokens, alone(tokens, limit))
    stats = engine.stats
    assert stats.cached_tokens > 0
    assert (stats.preemptions > 0) or chunk == 1
    assert (stats.accepted > 0) == (draft is not None)
    assert stats.free_pages == stats.num_pages
