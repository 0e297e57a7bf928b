"""Stories in which what changes a pool's path comes together: large pages, large heads, rewinds, pages that change hands, many caches,
views. Each is asked by itself elsewhere, and most mistakes show there; some need two of them."""

from __future__ import annotations

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.pages import Script, bounded, calls, needing
from inferspec.conformance.strategies import Pick

SHAPES = ((1, 66), (2, 5))
"""Heads and head dims: more features than a tile of a kernel has, or few."""

LARGE_PAGES = [32, 16, 64, 24, 5]
"""Pages of servers, most of them of more slots than a kernel takes at once, and one that is odd."""


@calls
def served(pick: Pick, views: bool = False, overwriting: bool = False) -> Call:
    """Two requests and the caller share a pool; the first is rewound, the second is over, and a third takes its pages. The last chunks
    are long."""
    script = Script(pick, pages=(7, 9), shapes=SHAPES)
    rewinding, page = pick("rewinding"), script.page_size
    script.former()

    def take(cache: int, length: int) -> None:
        number = script.append(cache, length, view=views)
        if overwriting:
            script.do("overwrite", step=number)

    take(0, pick.one_of(page + 1, page - 1, 2 * page + 1))
    take(1, pick.one_of(page, 1, page + 2))
    script.take()
    if rewinding:
        script.rewind(0, pick.one_of(page // 2 + 1, 2, page))
        script.look("gather", "pages")
    take(0, pick.one_of(page, 3, page // 2 + 1))
    script.look("offset", "read")
    script.release(1)
    take(2, pick.one_of(page + 3, page))
    take(0, page - script.lengths[0] % page)
    script.do("contents")
    script.whole()
    return script.call()


@bounded
def refused_behind_a_rewind(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a chunk for which there is no room comes right after a rewind; then one that
    fits."""
    script = Script(pick, pages=(7, 9), shapes=SHAPES)
    page = script.page_size
    script.append(0, pick.one_of(2 * page + 1, page, 3 * page - 1))
    script.append(1, 1)
    pick("rewinding")
    script.rewind(0, pick.one_of(1, page // 2 + 1, page))
    bad = script.do("append", cache=0, **script.arrays(script.room(0) + pick.one_of(1, page + 1)))
    script.look("offset", "pages", "gather")
    script.append(0, script.room(0))
    script.whole()
    return script.call(), bad


@needing
def crowds_that_guess(pick: Pick) -> Call:
    """A dozen requests and more, each with some tokens that were guessed, and rewound over the ends of pages or not; then they are over,
    one after the other."""
    pick("rewinding")
    requests = pick.one_of(12, 20, 10)
    script = Script(pick, pages=(5 * requests,), shapes=((1, 2), (2, 1)))
    page, random = script.page_size, pick.random
    for request in range(requests):
        script.append(request, int(random.integers(1, page + 2)))
    for request in random.permutation(requests).tolist():
        before = script.lengths[request]
        script.append(request, page + 2)
        script.rewind(request, script.lengths[request] - before + int(random.integers(-1, 1)))
    script.look("gather")
    script.do("num_free")
    script.do("ids")
    for request in random.permutation(requests).tolist():
        script.release(request)
        script.do("num_free")
    return script.call()


@calls
def changing_tables(pick: Pick) -> Call:
    """Tables of many rows, or of rows of many pages, of the same caches in another order, and when some are over and others have come."""
    script = Script(pick, page_size=min(pick.envelope["page_sizes"]))
    page = script.page_size
    script.heads, script.dim = 1, 2
    requests, pages = pick.one_of((6, 3), (2, 70), (12, 2))
    script.pages = (requests + 1) * (pages + 1)
    for request in range(requests):
        script.append(request, page * pages if not request else int(pick.random.integers(1, page * pages)))
    first = script.do("table", caches=list(script.lengths))
    script.do("table", caches=list(script.lengths)[::-1])
    length = script.lengths[0]
    for request in (0, requests - 1):
        script.release(request)
    for request in (requests, requests + 1):
        script.append(request, length if request == requests else 1)
    script.do("table", caches=list(script.lengths))
    script.do("reread_table", step=first)
    return script.call("block_table")
