"""`sampler.make_sampler(temp, top_p, top_k)`: takes log-probabilities of one row, as the course's generation gives them.

Before July 2026 the text did not say whether the id with which a sum of probabilities reaches top_p is kept, and the course's own
code dropped it: of packages of that time that do so top_p is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from inferspec.conformance.bridge.layouts import Offer
from inferspec.conformance.bridge.layouts.course.editions import is_of_july_2026
from inferspec.conformance.bridge.layouts.packages import Package, takes

# The text does not say whether top_p counts shares of all or of what top_k leaves.
ASKED: dict[str, Any] = {
    "dtypes": ("float32", "bfloat16"),
    "leading_dims": ((1,), (2,), (2, 3)),
    "both_filters": (False,),
}
ROW_BY_ROW = 5000
"""Rows that a sampler of one row at a time is asked for in a call: more would take too long."""
LIMIT = "the text has no top_k larger than the vocabulary"
UNASKED = {
    "test_ids_are_drawn_from_all_where_the_limit_is_larger_than_the_vocabulary": LIMIT,
    "test_the_only_id_of_a_row_is_drawn_whatever_the_limit": LIMIT,
    "test_the_smallest_top_p_leaves_the_most_likely_id": "the text counts in float32, where the smallest top_p is 0",
    "test_temperature_0_gives_the_largest_logit_by_its_last_bit": "the text's sampler is given log-probabilities",
    "test_no_rows_give_no_ids": "the text has no log-probabilities of no row",
}
REACHED = {"SAMP-48": "the text of this edition does not say what is left where ids reach top_p exactly"}
ONE_ROW = dict.fromkeys(
    ("test_each_of_very_many_rows_is_drawn", "test_each_of_very_many_rows_gives_its_greedy_id"),
    "the text's sampler is given one row at a time",
)


def _sampler(package: Package) -> Offer:
    import mlx.core as mx

    own = package.find("make_sampler", home="sampler")

    def made(temperature: float, top_k: int | None, top_p: float) -> Callable[[Any], Any]:
        # The text's word for no limit is None.
        options = {"temp": temperature, "temperature": temperature, "top_k": top_k or None}
        options["top_p"] = None if top_p == 1 else top_p
        sampler: Callable[[Any], Any] = own(**{name: x for name, x in options.items() if takes(own, name)})
        return sampler

    # The starter's sampler is greedy and returns None for any other temperature.
    row = mx.log(mx.array([[0.1, 0.2, 0.3, 0.4]]))
    if made(0, None, 1.0)(row) is None:
        raise NotImplementedError("make_sampler returns a sampler that returns None")
    drawing = _gives(lambda: made(1.0, None, 1.0)(row))
    unfiltered, filtered = (drawing and _takes_batches(made, filters) for filters in (UNFILTERED, FILTERED))

    class Sampler:
        def __init__(self, temperature: float = 0, top_k: int | None = None, top_p: float = 1.0) -> None:
            self.own = made(temperature, top_k, top_p)
            self.takes_batches = unfiltered if not temperature or (top_k is None and top_p == 1) else filtered

        def __call__(self, logits: Any) -> Any:
            logprobs = logits - mx.logsumexp(logits, axis=-1, keepdims=True)
            rows = logprobs.reshape(-1, logits.shape[-1])
            parts = [rows] if self.takes_batches or len(rows) == 1 else list(mx.split(rows, len(rows)))
            before = mx.array(rows)
            ids = mx.concatenate([self.own(part) for part in parts]).reshape(logits.shape[:-1])
            after = mx.concatenate(parts)
            if not mx.array_equal(before, after, equal_nan=True):
                # What is done to log-probabilities, which are made here, is done to what the caller gave.
                logits[...] = after.reshape(logits.shape)
            return ids

    narrows = ASKED if drawing else {**ASKED, "temperatures": ("greedy",)}
    unasked = UNASKED if is_of_july_2026(package) else UNASKED | REACHED
    if drawing and not is_of_july_2026(package) and _drops_what_reaches_top_p(made):
        narrows = {**narrows, "top_p": (False,)}
    if unfiltered and filtered:
        return Offer(Sampler, narrows, unasked=unasked)
    return Offer(Sampler, {**narrows, "draws": ROW_BY_ROW}, unasked=unasked | ONE_ROW)


def _gives(call: Callable[[], Any]) -> bool:
    """Whether a call gives anything; one that raises is there, and wrong."""
    try:
        return call() is not None
    except Exception:
        return True


def _drops_what_reaches_top_p(made: Callable[..., Callable[[Any], Any]]) -> bool:
    import mlx.core as mx

    def drawn(top_p: float) -> set[int]:
        # Of those that are left the least likely comes twice in nine times at least.
        row = mx.log(mx.array([[0.2, 0.4, 0.1, 0.3]]))
        return {int(made(1.0, None, top_p)(row).item()) for _ in range(100)}

    try:
        return (drawn(0.5), drawn(0.8)) == ({1}, {1, 3})
    except Exception:
        return False


UNFILTERED, FILTERED = ((None, 1.0),), ((1, 1.0), (None, 0.01))
"""What top_k and top_p may be of samplers that are tried."""


def _takes_batches(made: Callable[..., Callable[[Any], Any]], filters: Sequence[tuple[int | None, float]]) -> bool:
    """Whether several rows at once are drawn each by itself: those of which one id is left, or nearly certain, show it."""
    import mlx.core as mx

    # As many rows as ids: to index rows by ids past their number may end the process, and this is asked while loading.
    shares = [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.5, 0.3]]
    batch, sure = mx.log(mx.array(shares)), 200 * mx.array(shares)
    try:
        return all(
            made(1.0, top_k, top_p)(
                batch if top_k or top_p < 1 else sure - mx.logsumexp(sure, axis=-1, keepdims=True)
            ).tolist()
            == [3, 0, 1, 2]
            for top_k, top_p in filters
        )
    except Exception:
        return False


OFFERS = {"Sampler": _sampler}
