"""Stories in which what changes a batch's path comes together: many slots or large heads, idle slots, slots that change hands, long
requests, chunks, views. Each is asked by itself elsewhere, and most mistakes show there; some need two of them."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.batching_script import SMALL, Script, needing
from inferspec.conformance.strategies import Pick

SHAPES = ((9, 66), SMALL[0])
"""Heads and head dims of keys: more of either than a tile of a kernel has, or few."""

LATER = 32
"""Tokens that a request may take after its prompt, in a story that goes on to its end."""


class Mixture(Script):
    """The script of a batch of many slots, or of few with any heads. views: whether what comes lies in memory as views; overwriting: whether
    the caller uses its arrays again."""

    def __init__(self, pick: Pick, views: bool = False, overwriting: bool = False) -> None:
        super().__init__(pick, shapes=SHAPES)
        self.views_too, self.overwriting = views, overwriting
        if self.slots > 5:
            more = self.value_dim - self.key_dim
            self.heads, self.key_dim = SMALL[0]
            self.value_dim = self.key_dim + more

    def come(self, slot: int, length: int, stale: int = 0, nan: bool = False) -> None:
        """A request of so many tokens takes a slot."""
        self.add(length, slot, nan=nan, stale=stale)
        # As a tape has so many choices and no more, the arrays of a few requests are views.
        self._then(self.views_too and slot in (0, self.slots - 2))

    def go_on(self, length: int, mask_length: int | None = None, nan: tuple[int, ...] = ()) -> None:
        """Every request takes so many tokens, if they still are within the envelope."""
        before = len(self.steps)
        self.step(length, mask_length, nan)
        if len(self.steps) > before:
            self._then(self.views_too)

    def _then(self, as_views: bool) -> None:
        if as_views:
            self.all_laid()
        if self.overwriting:
            self.do("overwrite", step=len(self.steps))


@needing(slots=[3, 9, 33])
def served(
    pick: Pick,
    views: bool = False,
    overwriting: bool = False,
    queries: bool = False,
    stale: bool = False,
    poisoned: bool = False,
) -> Call:
    """Requests in all slots but the last, one of them long perhaps; a chunk; the one in the last of their slots leaves, the batch goes on
    without it, and another takes its place. queries: other numbers of queries than of new tokens; stale: caches had tokens that
    were rewound; poisoned: the request that leaves has tokens of NaN."""
    script = Mixture(pick, views, overwriting)
    long, chunk = pick.one_of(70, 3, 40), pick.one_of(12, 1, 20, 3)
    other = pick.one_of(2, 20, 5) if queries else None
    last = script.slots - 2
    lengths = [min(long, script.limit - LATER), *pick.random.integers(1, 6, last).tolist()]
    for slot, length in enumerate(lengths):
        script.come(slot, length, stale=2 if stale and slot == 0 else 0, nan=poisoned and slot == last)
    script.go_on(chunk, other, nan=(last,) if poisoned else ())
    script.remove(last)
    script.go_on(pick.one_of(1, 2))
    script.come(last, pick.one_of(3, 33, 9), stale=pick.one_of(1, 3) if stale else 0)
    script.go_on(pick.one_of(1, 9, 2), other)
    script.go_on(1)
    script.offsets()
    return script.call(room=(0, 7))
