"""Stories of pools and of caches that share one, for the suites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.paged_batches import TOGETHER, changing
from inferspec.conformance.inputs.pages import LARGE, SHAPES, Script, bounded, calls, needing, of_small_pages
from inferspec.conformance.strategies import Pick

# pools


@calls
def allocations(pick: Pick, look: bool = True) -> Call:
    """The caller takes pages and gives them back, and takes all there are in the end."""
    script = Script(pick)
    for _ in range(pick.size(1, 10)):
        if script.mine and pick.one_of(False, True):
            script.give(pick.one_of(0, -1))
        else:
            script.take()
        if look:
            script.do("num_free")
    while script.free:
        script.take()
    script.do("num_free")
    return script.call("PagePool")


@calls
def rounds(pick: Pick, pages: tuple[int, ...] = (3, 2, 5, 1)) -> Call:
    """All pages are taken and given back, more than once."""
    script = Script(pick, pages)
    for _ in range(pick.size(2, 4)):
        while script.free:
            script.take()
        script.do("num_free")
        while script.mine:
            script.give(int(pick.random.integers(-1, 1)))
        script.do("num_free")
    return script.call("PagePool")


@calls
def used_hundreds_of_times(pick: Pick) -> Call:
    """A page is taken and given back again and again, more often than a byte counts."""
    script = Script(pick, pages=(1, 2))
    for _ in range(pick.one_of(260, 300)):
        script.take()
        script.give()
    script.do("num_free")
    while script.free:
        script.take()
    return script.call("PagePool")


@of_small_pages
def counted_past_16_bits(pick: Pick) -> Call:
    """The free pages of a pool are counted whose number does not fit 15 bits, or 16."""
    script = Script(pick, page_size=1, pages=(2**16 + 9, 2**15 + 9))
    script.heads, script.dim = 1, 2
    script.do("num_free")
    script.take()
    script.do("num_free")
    script.give()
    script.do("num_free")
    return script.call("PagePool")


@bounded
def storages(pick: Pick) -> Call:
    """The arrays of a pool are looked at, before and after an allocation."""
    script = Script(pick, shapes=(*SHAPES, *LARGE))
    script.do("storage")
    script.take()
    script.do("storage")
    return script.call("PagePool")


@calls
def appends(pick: Pick, views: bool = False, former: bool = False, shapes: Sequence[tuple[int, int]] = SHAPES) -> Call:
    """Appends to one cache, gathered after each. shapes: heads and head dims."""
    script = Script(pick, shapes=shapes)
    script.former(always=former)
    for _ in range(pick.size(1, 5)):
        script.append(view=views)
        script.look("gather")
    return script.call()


@calls
def whole_pages_within_pages(pick: Pick) -> Call:
    """Chunks of as many tokens as one to five pages take, which begin inside a page."""
    script = Script(pick, pages=(40,))
    for pages in (3, pick.one_of(1, 2, 4, 5)):
        if not script.lengths.get(0, 0) % script.page_size:
            script.append(0, pick.size(1, script.page_size - 1))
        script.append(0, pages * script.page_size)
        script.look("gather", "pages")
    return script.call()


@calls
def decoding_long(pick: Pick) -> Call:
    """Dozens of tokens one after the other, of two requests in turns."""
    script = Script(pick, pages=(60, 90))
    script.append(0)
    for number in range(pick.size(20, 50)):
        script.append(number % 2, 1)
    script.look("gather", "read", "pages")
    return script.call()


@calls
def long_requests(pick: Pick) -> Call:
    """A request of hundreds of tokens or more, in dozens of pages, beside a short one; it decodes, is rewound, and ends."""
    script = Script(pick, pages=(140,), shapes=((1, 2), (2, 4)))
    rewinding = pick("rewinding")
    script.append(1, 3)
    script.append(0, pick.one_of(1100, 600, 1025, 513))
    for _ in range(2):
        script.append(0, 1)
    script.look("gather", "read", "pages")
    if rewinding:
        script.rewind(0, script.lengths[0] - pick.one_of(2, script.page_size, script.lengths[0] // 2))
        script.look("pages")
        script.do("num_free")
        script.append(0, 3)
        script.look("gather")
    script.release(0)
    script.do("num_free")
    return script.call()


@calls
def crowds(pick: Pick) -> Call:
    """As many requests as a server takes together, each of a few tokens, some of which end and make way for others."""
    requests = pick.one_of(12, 33, 20)
    script = Script(pick, pages=(4 * requests,), shapes=((1, 2), (2, 1)))
    lengths = pick.random.integers(1, 2 * script.page_size + 1, requests)
    for request, length in enumerate(lengths.tolist()):
        script.append(request, length)
    for request, over in enumerate((pick.random.random(requests) < 0.2).tolist()):
        if over:
            script.release(request)
            script.append(request + 100, 2)
        else:
            script.append(request, 1)
    script.look("gather")
    script.do("ids")
    script.do("num_free")
    return script.call()


@needing
def guessing(pick: Pick) -> Call:
    """Round after round a few tokens are guessed, and most of them rewound, as speculation does; another request is
    beside it."""
    pick("rewinding")
    script = Script(pick, pages=(40, 60))
    script.append(0)
    script.append(1, 1)
    for number in range(pick.size(12, 30)):
        guessed = int(pick.random.integers(1, 6))
        before = script.lengths[number % 2]
        script.append(number % 2, guessed)
        script.rewind(number % 2, int(pick.random.integers(0, script.lengths[number % 2] - before + 1)))
    script.whole()
    return script.call()


@calls
def counted(pick: Pick, look: tuple[str, ...] = ("offset",)) -> Call:
    """Every kind of event of two requests, with what is counted before and after each."""
    script = Script(pick)
    rewinding = pick("rewinding")
    for method in look:
        script.do(method, cache=0)
    script.do("num_free")
    for _ in range(pick.size(1, 8)):
        script.event(rewinding=rewinding)
        script.look(*look)
        script.do("num_free")
    return script.call()


@calls
def read_by_pages(pick: Pick) -> Call:
    """The tokens are read from the pool's arrays, where page_ids say that they are."""
    script = Script(pick)
    rewinding = pick("rewinding")
    script.former()
    for _ in range(pick.size(1, 6)):
        script.event(rewinding=rewinding)
        script.look("read")
    return script.call()


@calls
def beside_others(pick: Pick) -> Call:
    """A request comes and goes on while a cache of another pool, made meanwhile, takes as many tokens, as that of another
    layer does; its pages may be of another size."""
    script = Script(pick)
    size = pick.one_of(script.page_size, *pick.envelope["page_sizes"])
    other = {"num_pages": script.pages * script.page_size // size + 2, "page_size": size}
    script.former()
    for _ in range(pick.size(1, 4)):
        length = min(max(script.size(), 1), script.room(0))
        if length:
            script.append(0, length)
            script.do("abroad", **other, **script.arrays(length, nan=False))
        script.append(1)
        script.do("ids")
        script.look("gather")
    return script.call()


@calls
def side_by_side(pick: Pick, look: tuple[str, ...] = ("gather",)) -> Call:
    """Three requests share a pool with each other and with the caller."""
    script = Script(pick, pages=(9, 7, 13))
    rewinding = pick("rewinding")
    script.former()
    for _ in range(pick.size(1, 9)):
        if pick.one_of(True, True, True, False):
            script.event(requests=3, rewinding=rewinding)
        elif script.mine and pick.one_of(True, False):
            script.give()
        else:
            script.take()
        script.look(*look)
        script.do("ids")
    return script.call()


@calls
def in_pages_given_back(pick: Pick) -> Call:
    """The caller takes most pages and gives them back, the first one first, the last one first, or in any order; a cache takes as many
    at once."""
    script = Script(pick, pages=(7, 5, 9))
    order = pick.one_of("first", "last", "any")
    for _ in range(script.pages - 1):
        script.take()
    while script.mine:
        script.give({"first": 0, "last": -1}.get(order, int(pick.random.integers(len(script.mine)))))
    script.append(0, (script.pages - 2) * script.page_size + 1)
    script.append(1, 1)
    script.look("gather", "read")
    return script.call()


@calls
def beside_the_caller(pick: Pick) -> Call:
    """The caller has pages of its own while caches come and go."""
    script = Script(pick)
    rewinding = pick("rewinding")
    script.former()
    script.append(0)
    script.take()
    for _ in range(pick.size(1, 6)):
        script.event(rewinding=rewinding)
        if pick.one_of(False, False, True):
            script.take()
        script.do("contents")
    return script.call()


@calls
def recycled(pick: Pick) -> Call:
    """Every slot held NaN for a request that is over."""
    script = Script(pick)
    rewinding = pick("rewinding")
    script.former(always=True)
    for _ in range(pick.size(1, 6)):
        script.event(rewinding=rewinding)
        script.look("gather", "read")
    return script.call()


@needing
def taken_back(pick: Pick) -> Call:
    """A chunk of many pages is rewound before anybody has looked at it, to where a page begins or within one; others take
    its pages, and it goes on."""
    pick("rewinding")
    script = Script(pick, pages=(13, 17))
    page = script.page_size
    script.append(0, pick.one_of(page, 1, 2 * page))
    before = script.lengths[0]
    script.append(0, page * pick.one_of(7, 6, 9) + pick.one_of(0, 1, page - 1))
    script.rewind(0, script.lengths[0] - pick.one_of(before, before, before + 1, 0))
    script.append(1, 2 * page)
    script.append(0, pick.one_of(1, page, page + 1))
    script.whole()
    return script.call()


@needing
def rewinds(pick: Pick, look: tuple[str, ...] = ("gather",)) -> Call:
    """Appends and rewinds, beside another cache; each rewind followed by an append."""
    pick("rewinding")
    script = Script(pick)
    script.append(0)
    script.append(1)
    for _ in range(pick.size(1, 3)):
        before, between = script.lengths[0], pick.one_of(True, False)
        if pick.one_of(False, True):
            script.mistake(0)
        else:
            script.rewind(0)
        if between:
            script.look(*look)
            script.do("num_free")
            script.append(pick.one_of(0, 0, 1))
            script.append(0)
        else:
            # As many tokens as when it was looked at before, and others.
            script.append(0, max(before - script.lengths[0], 1))
        script.look(*look)
        script.do("num_free")
        script.do("ids")
    return script.call()


@needing
def grown_again(pick: Pick) -> Call:
    """A cache of some pages is looked at, and rewound; another takes what it gave back, and it grows to as many tokens as it had."""
    pick("rewinding")
    script = Script(pick, pages=(13, 17))
    page = script.page_size
    script.append(0, page * pick.one_of(3, 4, 2) + pick.one_of(1, 0, page))
    script.look("gather")
    before = script.lengths[0]
    script.rewind(0, before - pick.one_of(page, 1, page + 1))
    script.append(1, page * pick.one_of(1, 2))
    script.append(0, before - script.lengths[0])
    script.look("gather")
    return script.call()


@needing
def rewinds_to_the_ends(pick: Pick) -> Call:
    """Rewinds by nothing and by everything, at any time."""
    pick("rewinding")
    script = Script(pick)
    if pick.one_of(False, True):
        script.rewind(0, 0)
    for _ in range(pick.size(1, 3)):
        script.append(0)
        script.rewind(0, pick.one_of(0, script.lengths[0]))
        script.whole()
    script.append(0)
    script.whole()
    return script.call()


@calls
def released(pick: Pick, again: bool = False) -> Call:
    """Requests end, one after the other, and their pages serve others."""
    script = Script(pick)
    rewinding = pick("rewinding")
    requests = pick.one_of(2, 3)
    for request in range(requests):
        script.append(request)
    for _ in range(pick.size(0, 2)):
        script.event(requests, rewinding, releasing=False)
    for request in range(requests - 1):
        script.release(request)
        script.do("num_free")
        if again and pick.one_of(True, False):
            script.do("release_again", cache=request)
        if pick.one_of(False, True):
            script.append(request + 10)
        if again:
            script.do("release_again", cache=request)
        script.whole()
    script.append(requests - 1, script.room(requests - 1))
    script.whole()
    return script.call()


@calls
def emptied(pick: Pick) -> Call:
    """A released cache is looked at."""
    script = Script(pick)
    for _ in range(pick.size(1, 3)):
        script.append(0)
    script.release(0)
    script.do("offset", cache=0)
    script.do("pages", cache=0)
    return script.call()


@calls
def worn(pick: Pick) -> Call:
    """Request after request takes and gives back pages; in the end one request gets them all."""
    script = Script(pick, pages=(5, 3, 7))
    rewinding = pick("rewinding")
    for _ in range(pick.size(2, 10)):
        script.event(rewinding=rewinding)
    for cache in list(script.lengths):
        script.release(cache)
    script.do("num_free")
    script.append(50, script.pages * script.page_size)
    script.whole()
    return script.call()


@bounded
def drained(pick: Pick) -> Call:
    """The caller wants a page when caches have them all; then one of them gives some back."""
    script = Script(pick, pages=(3, 5, 1, 2))
    script.append(0)
    for cache in (1, 0):
        script.append(cache, script.room(cache))
    script.do("allocate")
    script.do("ids")
    script.do("num_free")
    script.release(0)
    script.take()
    script.do("ids")
    script.look("gather")
    return script.call()


@calls
def filled(pick: Pick) -> Call:
    """A pool is filled to its last slot by one cache or two."""
    script = Script(pick, pages=(3, 5, 1, 2))
    for _ in range(pick.size(0, 3)):
        script.append(pick.one_of(0, 1))
    for cache in (0, 1):
        script.append(cache, script.room(cache))
        script.append(cache, 0)
    script.whole()
    return script.call()


@calls
def overwritten(pick: Pick) -> Call:
    """The caller uses its arrays again after each append."""
    script = Script(pick)
    for _ in range(pick.size(1, 4)):
        number = script.append(0)
        script.do("overwrite", step=number)
        script.look("gather")
    return script.call()


@calls
def kept_results(pick: Pick) -> Call:
    """What was gathered is read again after the pool was written."""
    script = Script(pick)
    rewinding = pick("rewinding")
    script.append(0)
    first = [script.do("gather", cache=0)]
    for _ in range(pick.size(1, 3)):
        script.event(rewinding=rewinding)
        first += [script.do("gather", cache=cache) for cache in script.lengths]
    for cache in list(script.lengths):
        script.release(cache)
    script.append(60, script.pages * script.page_size)
    for number in first:
        script.do("reread", step=number)
    return script.call()


@of_small_pages
def many_pages(pick: Pick) -> Call:
    """So many pages that their ids do not fit 16 bits."""
    script = Script(pick, page_size=1, pages=(2**16 + 9, 2**15 + 9))
    script.heads, script.dim = 1, 2
    script.append(0, script.pages - 7)
    script.append(1, 3)
    script.append(0, 2)
    script.look("gather", "read")
    return script.call()


# block tables


@calls
def tables(pick: Pick, often: bool = False, empty: bool = False) -> Call:
    """Batches of caches of different lengths, some of them empty."""
    script = Script(pick, pages=(11, 13, 20))
    rewinding = pick("rewinding")
    script.former()
    if not empty:
        script.append(1, pick.one_of(1, script.page_size + 1))
    script.append(0)
    for _ in range(pick.size(1, 5)):
        if often and rewinding and script.lengths.get(0) and pick.one_of(False, True):
            # As many tokens as before, in pages that another request has had meanwhile.
            script.do("table", caches=[0])
            gone = min(script.lengths[0], script.page_size + 1)
            script.rewind(0, gone)
            script.append(1, script.page_size)
            script.append(0, gone)
            script.do("table", caches=[0])
        else:
            script.event(requests=3, rewinding=rewinding)
        if often:
            script.do("table", caches=_batch(script))
    last = script.do("table", caches=_batch(script) + ([77] if empty else []))
    if often:
        for number in [n for n, (method, _) in enumerate(script.steps[: last - 1], 1) if method == "table"]:
            script.do("reread_table", step=number)
    return script.call("block_table")


@needing
def tables_in_other_pages(pick: Pick) -> Call:
    """Two caches give all their pages back, another one takes some of them, and the two take as many tokens as before."""
    pick("rewinding")
    script = Script(pick, pages=(11, 13, 20))
    page = script.page_size
    lengths = [pick.one_of(1, page, page + 1, 2 * page) for _ in range(2)]
    for cache, length in enumerate(lengths):
        script.append(cache, length)
    script.do("table", caches=[0, 1])
    for cache, length in enumerate(lengths):
        script.rewind(cache, length)
    script.append(2, page)
    for cache, length in enumerate(lengths):
        script.append(cache, length)
    script.do("table", caches=[0, 1])
    return script.call("block_table")


@calls
def large_tables(pick: Pick, rows: tuple[int, ...] = (70, 2, 12)) -> Call:
    """Dozens of rows, or two, of which one has hundreds of pages."""
    script = Script(pick, page_size=min(pick.envelope["page_sizes"]))
    page = script.page_size
    script.heads, script.dim = 1, 2
    requests = pick.one_of(*rows)
    lengths = pick.random.integers(1, 5, requests) * page
    if requests == 2:
        lengths[-1] = pick.one_of(300, 140, 530) * page
    script.pages = int(lengths.sum()) // page + 3
    for request, length in enumerate(lengths.tolist()):
        script.append(request, length)
    script.append(0, 1)
    script.do("table", caches=list(script.lengths)[:: pick.one_of(-1, 1)])
    return script.call("block_table")


@of_small_pages
def tables_of_many_pages(pick: Pick) -> Call:
    """A table of page ids that do not fit 16 bits, and of a context that does not."""
    script = Script(pick, page_size=1, pages=(2**16 + 9, 2**15 + 9))
    script.heads, script.dim = 1, 2
    script.append(0, script.pages - 7)
    script.append(1, 3)
    script.do("table", caches=[1, 0])
    return script.call("block_table")


def _batch(script: Script) -> list[int]:
    """Some of the live caches, in any order."""
    caches = list(script.lengths) or [78]
    return script.pick.one_of(caches, caches[::-1], caches[:1], caches[1:] or caches)


_pool = {"num_pages": 2, "page_size": 2, "num_kv_heads": 1, "head_dim": 2, "dtype": "float32"}
_pair = {"key": np.ones((1, 1, 1, 2), np.float32), "value": np.ones((1, 1, 1, 2), np.float32)}
_long = ("append", {"cache": 0, **{name: np.ones((1, 1, 1, 32), np.float32) for name in _pair}})
_query = np.ones((1, 1, 1, 32), np.float32)
_steps = (("append", {"cache": 0, **_pair}), ("gather", {"cache": 0}))

EXAMPLES = {
    "PagePool": Call("PagePool", {**_pool, "steps": (("allocate", {}),)}),
    "PagedKVCache": Call("PagedKVCache", {**_pool, "steps": _steps}),
    "block_table": Call("block_table", {**_pool, "steps": (_steps[0], ("table", {"caches": [0]}))}),
    TOGETHER: Call(TOGETHER, {**_pool, "head_dim": 32, "steps": (_long, ("attend", {"caches": [0], "query": _query}))}),
}
"""The plainest call of each operation."""

_nothing = ("append", {"cache": 0, **{name: array[:, :, :0] for name, array in _pair.items()}})

OPTIONAL = {"PagedKVCache": {"empty_chunks": {True: EXAMPLES["PagedKVCache"].having(steps=(_steps[0], _nothing))}}}
"""Choices that may be refused, by their key, with a call that asks for them and for nothing else that is rare."""

ORDINARY = {"PagePool": allocations, "PagedKVCache": side_by_side, "block_table": tables, TOGETHER: changing}
"""The widest calls of each operation."""
