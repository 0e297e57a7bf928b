"""`sampler.make_sampler(temp, top_p, top_k)`: takes log-probabilities of one row, as the course's generation gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferspec.conformance.layouts import Offer
from inferspec.conformance.layouts.packages import Package, takes

ASKED: dict[str, Any] = {"dtypes": ("float32", "bfloat16"), "leading_dims": ((1,),)}
ROW_BY_ROW = 5000
"""Rows that a sampler of one row at a time is asked for in a call: too few to count how often each id comes."""


def _sampler(package: Package) -> Offer:
    import mlx.core as mx

    own = package.find("make_sampler", home="sampler")

    def made(temperature: float, top_k: int | None, top_p: float) -> Callable[[Any], Any]:
        options = {"temp": temperature, "temperature": temperature, "top_k": top_k}
        options["top_p"] = None if top_p == 1 else top_p
        sampler: Callable[[Any], Any] = own(**{name: x for name, x in options.items() if takes(own, name)})
        return sampler

    # The starter's sampler is greedy and returns None for any other temperature.
    row = mx.log(mx.array([[0.1, 0.2, 0.3, 0.4]]))
    if made(0, None, 1.0)(row) is None:
        raise NotImplementedError("make_sampler returns a sampler that returns None")
    drawing = _gives(lambda: made(1.0, None, 1.0)(row))
    whole = drawing and _takes_batches(made)

    class Sampler:
        def __init__(self, temperature: float = 0, top_k: int | None = None, top_p: float = 1.0) -> None:
            self.own = made(temperature, top_k, top_p)

        def __call__(self, logits: Any) -> Any:
            logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
            rows = logprobs.reshape(-1, logits.shape[-1])
            parts = [rows] if whole or len(rows) == 1 else [one[None] for one in rows]
            before = [mx.array(part) for part in parts]
            ids = mx.concatenate([self.own(part) for part in parts]).reshape(logits.shape[:-1])
            if not all(mx.array_equal(*pair, equal_nan=True) for pair in zip(parts, before, strict=True)):
                # What is done to log-probabilities, which are made here, is done to what the caller gave.
                logits[...] = mx.concatenate(parts).reshape(logits.shape)
            return ids

    narrows = ASKED if drawing else {**ASKED, "temperatures": ("greedy",)}
    return Offer(Sampler, narrows if whole else {**narrows, "draws": ROW_BY_ROW})


def _gives(call: Callable[[], Any]) -> bool:
    """Whether a call gives anything; one that raises is there, and wrong."""
    try:
        return call() is not None
    except Exception:
        return True


def _takes_batches(made: Callable[..., Callable[[Any], Any]]) -> bool:
    """Whether several rows at once are drawn each by itself: those of which a filter leaves one id show it."""
    import mlx.core as mx

    # As many rows as ids: to index rows by ids past their number may end the process, and this is asked while loading.
    shares = [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.5, 0.3]]
    batch = mx.log(mx.array(shares))
    filters = ((1, 1.0), (None, 0.01))
    try:
        return all(made(1.0, top_k, top_p)(batch).tolist() == [3, 0, 1, 2] for top_k, top_p in filters)
    except Exception:
        return False


OFFERS = {"Sampler": _sampler}
