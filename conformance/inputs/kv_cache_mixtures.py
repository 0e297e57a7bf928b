"""Stories in which what changes a cache's path comes together: large sizes of one kind, growth, rewinds, states, views, empty
chunks, dozens of appends. Each is asked by itself elsewhere, and most mistakes show there; some need two of them."""

from __future__ import annotations

from collections.abc import Sequence

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.kv_cache_script import Script
from inferspec.conformance.strategies import Pick, calls

SIZES = ((0, (2, 4)), (0, (1, 128)), (0, (9, 4)), (33, (2, 4)))
"""Batch rows (0: few) and heads and head dims of keys: few of all, or more of one than a tile of a kernel has."""

LARGE = SIZES[1:]
"""Those of which something is large."""


class Mixture(Script):
    """The script of a cache of any of some sizes. views: whether what is appended lies in memory as views; overwriting: whether the
    caller uses its arrays again."""

    def __init__(
        self,
        pick: Pick,
        views: bool = False,
        overwriting: bool = False,
        sizes: Sequence[tuple[int, tuple[int, int]]] = SIZES,
    ) -> None:
        # First: choices that have a byte of their own in every tape are spread evenly.
        rows, shape = pick.one_of(*sizes)
        super().__init__(pick, shapes=(shape,))
        self.views_too, self.overwriting = views, overwriting
        claimed = pick.envelope["batches"]
        if sum(shape) > 8 or rows:
            self.batch = rows if rows and max(claimed) > 3 else min(claimed)

    def take(self, length: int) -> None:
        """A chunk of so many tokens, none where a subject takes an empty one."""
        if not length and not self.empty:
            return
        number = self.append(length, view=self.views_too)
        if self.overwriting:
            self.do("overwrite", step=number)

    def go_back(self, n: int) -> None:
        """A rewind, if only by as many tokens as there are but one."""
        self.rewind(min(n, max(self.length - 1, 0)))

    def become_another(self, in_use: bool = False) -> None:
        """A fresh cache restores the state, or in use this one itself, which has gone on meanwhile."""
        self.save()
        if in_use:
            self.take(3)
        else:
            self.another()
        self.restore()


@calls
def mixtures(
    pick: Pick,
    static: bool = False,
    views: bool = False,
    overwriting: bool = False,
    in_use: bool = False,
    rewound: bool = False,
    sizes: Sequence[tuple[int, tuple[int, int]]] = SIZES,
) -> Call:
    """A prompt that leaves a buffer nearly full or not, rewinds, an empty chunk, a chunk that crosses the buffer's end, a state that is
    restored, and what follows. in_use: the cache that restores is the one that was saved, and has more tokens by then;
    rewound: a rewind comes right before the state is taken."""
    script = Mixture(pick, views, overwriting, sizes)
    rewinding, restoring = pick("rewinding"), pick("restoring")
    script.take(pick.one_of(250, 5, 254))
    if rewinding:
        script.go_back(pick.one_of(1, 3, 7))
        if pick.one_of(True, False):
            script.take(0)
    script.take(pick.one_of(20, 1, 70, 7))
    if rewound:
        script.go_back(pick.one_of(1, 4, 2))
    if restoring:
        script.become_another(in_use)
    script.take(pick.one_of(1, 33, 2))
    if rewinding:
        script.go_back(pick.one_of(2, 20, 5))
    script.take(pick.one_of(1, 3))
    script.do("offset")
    return script.call(static, room=(0, 7))


@calls
def long_lived(pick: Pick, static: bool = False, whole: bool = False) -> Call:
    """Dozens of tokens come one after the other; then most of them are rewound, or all, or the cache is saved and restored, and an empty
    chunk and others follow. whole: all are rewound."""
    script = Mixture(pick, sizes=SIZES[:1])
    rewinding, restoring = pick("rewinding"), pick("restoring")
    script.take(pick.one_of(3, 1, 6))
    for _ in range(pick.size(18, 40)):
        script.append(1)
    if restoring:
        script.become_another()
    if rewinding:
        script.rewind(script.length - (0 if whole else pick.one_of(1, 2, 4)))
        script.take(0)
        script.do("offset")
    for length in (2, 1):
        script.take(length)
    script.do("offset")
    return script.call(static)


@calls
def rewound_below_a_state(pick: Pick, static: bool = False) -> Call:
    """A cache that has restored a state takes hundreds of tokens, or a few, and is rewound to before what it restored."""
    script = Mixture(pick, sizes=SIZES[:1])
    pick("rewinding"), pick("restoring")
    script.take(pick.one_of(7, 100, 33, 250))
    held = script.length
    script.become_another()
    script.take(pick.one_of(300, 257, 5))
    script.take(1)
    script.go_back(script.length - held + pick.one_of(2, 1, 5))
    script.take(2)
    script.do("offset")
    return script.call(static)


@calls
def successors(pick: Pick) -> Call:
    """A cache goes past its buffer, and another one begins with as many tokens as it had; what the first one returned is read again."""
    script = Mixture(pick)
    length = pick.one_of(250, 5, 100, 33)
    returned = [script.append(length), script.append(pick.one_of(20, 300, 252))]
    script.another()
    script.append(length)
    for step in returned:
        script.do("reread", step=step)
    return script.call(static=False)
