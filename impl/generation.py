"""Generation in MLX: ids from a model, one at a time; and text from ids, as they come.

Source: the tiny-llm course, week 1 day 6 and week 2 day 1; mlx-lm's `generate_step` for prompts in pieces.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import mlx.core as mx

from inferspec.impl.detokenizer import StreamingDetokenizer

__all__ = ["Model", "StreamingDetokenizer", "as_prompt", "generate"]

PREFILL = 512
"""How many tokens of a prompt are fed at a time."""

Sampler = Callable[[mx.array], Any]
"""Takes the logits V of the next id and returns it, a number or an array of one."""


class Model(Protocol):
    """What generation needs of a model. A cache is a sequence of layers, each with its `state`."""

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array: ...

    def make_cache(self) -> Any: ...


def generate(
    model: Model,
    tokens: Sequence[int] | mx.array,
    *,
    max_tokens: int,
    eos: Iterable[int] = (),
    sampler: Sampler | None = None,
    cache: bool = True,
) -> Iterator[int]:
    """Return an iterator of at most `max_tokens` ids that the model goes on with after `tokens`.

    tokens: the prompt, a list or an array of one axis, at least one id. eos: ids that end the iterator; they do not
    come out. sampler: takes the logits V and returns an id; by default the largest logit wins, the lowest id of equal
    ones. cache: False feeds the whole sequence for each id.

    Every id comes out before the next step begins, and no step runs that no id needs. ValueError for an empty prompt,
    one of more axes, and a negative max_tokens; TypeError for what are no integers: all before the model is called.
    """
    prompt = as_prompt(tokens)
    limit = operator.index(max_tokens)
    if limit < 0:
        raise ValueError(f"max_tokens is {max_tokens}; it takes 0 or more")
    ends = frozenset(operator.index(token) for token in eos)
    choose = sampler or _greedy
    steps = _cached(model, prompt, choose) if cache else _uncached(model, prompt, choose)
    return _until(steps, limit, ends)


def as_prompt(tokens: Sequence[int] | mx.array) -> mx.array:
    """Return the prompt as an array that any id fits into, whatever that of the caller holds.

    ValueError when it is empty or has more axes than one, TypeError when it holds anything but integers.
    """
    ids = tokens if isinstance(tokens, mx.array) else mx.array([operator.index(token) for token in tokens], mx.int64)
    if ids.ndim != 1:
        raise ValueError(f"tokens are {ids.shape}; they take one axis")
    if not ids.size:
        raise ValueError("tokens are empty; generation takes at least one to go on from")
    if not mx.issubdtype(ids.dtype, mx.integer):
        raise TypeError(f"tokens are {ids.dtype}; they take integers")
    return ids.astype(mx.int64)


def _until(steps: Iterator[int], limit: int, ends: frozenset[int]) -> Iterator[int]:
    for _ in range(limit):
        token = next(steps)
        if token in ends:
            return
        yield token


def _cached(model: Model, prompt: mx.array, choose: Sampler) -> Iterator[int]:
    """Feed each token once.

    The prompt goes in pieces, all but its last token, and of each only the cache is computed: not the output head,
    which for a large vocabulary is a good part of the work. Evaluating after each piece bounds the graph.
    """
    cache = model.make_cache()
    # A model that computes at once and not when it is asked has this for tokens whose logits nobody wants.
    feed = getattr(model, "prefill", model)
    for start in range(0, prompt.size - 1, PREFILL):
        feed(prompt[None, start : min(start + PREFILL, prompt.size - 1)], cache)
        mx.eval([layer.state for layer in cache])
    fed = prompt[None, -1:]
    while True:
        token = id_of(choose(model(fed, cache)[0, -1]))
        yield token
        fed = mx.array([[token]], mx.int64)


def _uncached(model: Model, prompt: mx.array, choose: Sampler) -> Iterator[int]:
    """Feed everything each time."""
    sequence = prompt
    while True:
        token = id_of(choose(model(sequence[None])[0, -1]))
        yield token
        sequence = mx.concatenate([sequence, mx.array([token], mx.int64)])


def _greedy(logits: mx.array) -> mx.array:
    return mx.argmax(logits)


def id_of(token: Any) -> int:
    """The id that a sampler returned, a number or an array of one; TypeError for what is no integer."""
    return operator.index(token.item() if hasattr(token, "item") else token)
