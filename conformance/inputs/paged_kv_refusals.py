"""Stories of pools and of the caches in them with a step that must be refused: (story, number of that step)."""

from __future__ import annotations

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.pages import Script, bounded, calls, needing
from inferspec.conformance.inputs.steps import Tried
from inferspec.conformance.strategies import Pick
from inferspec.spec.numerics import numpy_dtype


@bounded
def exhausted(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """(story, number of the step that must be refused): an allocation without a free page, then some that are right."""
    script = Script(pick, pages=(3, 1, 2, 6))
    for _ in range(pick.size(0, 2)):
        script.take()
        if pick.one_of(False, True):
            script.give()
    while script.free:
        script.take()
    script.do("allocate")
    bad = script.tried(again)
    _take_all_again(script)
    return script.call("PagePool"), bad


@calls
def freed_twice(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a page is given back that the caller gave back before."""
    script = Script(pick)
    for _ in range(pick.size(1, 4)):
        script.take()
    given = [script.give(pick.one_of(0, -1)) for _ in range(pick.size(1, len(script.mine)))]
    bad = script.do("free", step=pick.one_of(given[0], given[-1]))
    if pick.one_of(False, True):
        script.do("free", step=given[-1])
    _take_all_again(script)
    return script.call("PagePool"), bad


@calls
def freed_of_many(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): in a pool of so many pages that their ids do not fit 6 or 8
    bits, a page that was given back is given back again; another one may be in use whose id looks like it."""
    script = Script(pick, pages=(520, 70, 520), page_size=min(pick.envelope["page_sizes"]))
    script.heads, script.dim = 1, 2
    while script.free:
        script.take()
    given = [script.give(int(pick.random.integers(-1, 1))) for _ in range(pick.size(1, script.pages))]
    bad = script.do("free", step=pick.one_of(given[0], given[-1]))
    script.do("num_free")
    return script.call("PagePool"), bad


@calls
def freed_foreign(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a page is given back that nobody ever took."""
    script = Script(pick)
    for _ in range(pick.size(0, 3)):
        script.take()
    bad = script.do("free_foreign")
    _take_all_again(script)
    return script.call("PagePool"), bad


@calls
def freed_missing(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a page is given back that the pool does not have."""
    script = Script(pick)
    # With every page in use, an id that wraps around names one of them.
    for _ in range(pick.one_of(script.pages, 0, 1)):
        script.take()
    bad = script.do("free_id", page=pick.one_of(-1, script.pages, -script.pages, script.pages + 3, 2**31, 2**32))
    _take_all_again(script)
    return script.call("PagePool"), bad


def _take_all_again(script: Script) -> None:
    """What shows whether a refused step changed something: all pages, given back and taken."""
    script.do("num_free")
    if script.mine:
        script.give()
    while script.free:
        script.take()
    script.do("num_free")
    script.do("allocate")


@calls
def no_pools(pick: Pick) -> Call:
    """A pool of nothing."""
    script = Script(pick)
    script.do("num_free")
    name = pick.one_of("num_pages", "page_size", "num_kv_heads", "head_dim")
    return script.call("PagePool").having(**{name: pick.one_of(0, -1)})


@needing
def bad_rewinds(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """(story, number of the step that must be refused): a rewind too far or backwards, and what comes after it."""
    pick("rewinding")
    script = Script(pick)
    for _ in range(pick.size(0, 3)):
        script.event(requests=1, rewinding=True, releasing=False)
    script.append(1)
    length, page = script.lengths.setdefault(0, 0), script.page_size
    # Slots of the last page that are not in use are no tokens.
    too_far = [length + 1, script.pages_of(length) * page + 1, length + page, script.pages * page + 1]
    script.do("rewind", cache=0, n=pick.one_of(*too_far, -1, -page, -length - 1, 2**31, 2**32))
    bad = script.tried(again)
    _go_on(script)
    return script.call(), bad


@bounded
def overfull(pick: Pick, again: bool = False) -> tuple[Call, Tried]:
    """(story, number of the step that must be refused): more tokens than free pages hold, then as many as they do."""
    script = Script(pick, pages=(5, 3, 4, 9))
    rewinding = pick("rewinding")
    script.append(0)
    for _ in range(pick.size(0, 3)):
        script.event(rewinding=rewinding, releasing=False)
    if pick.one_of(False, True):
        script.take()
    cache = pick.one_of(0, 1, 2)
    length = script.room(cache) + pick.one_of(1, script.page_size, script.page_size + 1, 3 * script.page_size)
    script.do("append", cache=cache, **script.arrays(length))
    bad = script.tried(again)
    script.lengths.setdefault(cache, 0)
    script.whole()
    script.do("contents")
    if rewinding and pick.one_of(False, True):
        script.rewind(0)
    script.append(cache, script.room(cache))
    script.whole()
    for one in list(script.lengths):
        script.release(one)
        script.do("num_free")
    return script.call(), bad


@bounded
def refused_in_turns(pick: Pick, last: str) -> tuple[Call, tuple[int, ...]]:
    """(story, numbers of the steps that must be refused): a rewind that goes too far, a chunk of more heads and one that has no room, one
    after the other in any order, the one that `last` says at the end; then as much as there is room for."""
    script = Script(pick, pages=(5, 4, 9))
    script.append(0, pick.one_of(script.page_size + 1, 1))
    script.append(1, 1)
    kinds = {"heads", "room", *(["rewind"] if pick("rewinding") else [])} - {last}
    bad = []
    for kind in (*pick.random.permutation(sorted(kinds)).tolist(), last):
        if kind == "rewind":
            bad.append(script.do("rewind", cache=0, n=script.lengths[0] + 1))
            continue
        given = script.arrays(script.room(0) + 1 if kind == "room" else 1)
        if kind == "heads":
            given = {name: np.concatenate([x, x[:, :1]], axis=1) for name, x in given.items()}
        bad.append(script.do("append", cache=0, **given))
    script.whole()
    script.append(0, script.room(0))
    script.whole()
    return script.call(), tuple(bad)


@bounded
def refused_when_full(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): no page is free, and the last one of a cache is part full, when a chunk is refused;
    the cache is rewound within that page, or not, and given what it has room for."""
    script = Script(pick, pages=(5, 4, 3))
    rewinding, left = pick("rewinding"), pick.size(1, max(script.page_size - 2, 1))
    script.append(1, 1)
    script.append(0, script.room(0) - left)
    bad = script.do("append", cache=0, **script.arrays(script.room(0) + pick.one_of(1, script.page_size)))
    if rewinding:
        script.rewind(0, pick.one_of(1, 0))
    script.append(0, script.room(0))
    script.whole()
    return script.call(), bad


@bounded
def given_back_once_refused(pick: Pick, kind: str) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a rewind or a chunk of more heads is refused; then pages are given back, by a
    rewind where a subject has that, and by the end of all requests."""
    script = Script(pick, pages=(9, 7))
    page, rewinding = script.page_size, pick("rewinding")
    script.append(0, 3 * page + pick.one_of(1, 0))
    script.append(1, pick.one_of(1, page + 1))
    if kind == "rewind":
        bad = script.do("rewind", cache=0, n=script.lengths[0] + 1)
    else:
        given = {name: np.concatenate([x, x[:, :1]], axis=1) for name, x in script.arrays(1).items()}
        bad = script.do("append", cache=0, **given)
    if rewinding:
        script.rewind(0, page + pick.one_of(1, 0))
    for one in (0, 1):
        script.do("num_free")
        script.release(one)
    script.do("num_free")
    script.append(2, script.room(2))
    script.look("gather")
    return script.call(), bad


@bounded
def others_once_refused(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a chunk of one cache has no room; another one, and one that is new, take some
    tokens."""
    script = Script(pick, pages=(5, 7, 9))
    for cache in (0, 1):
        script.append(cache, pick.one_of(1, script.page_size))
    bad = script.do("append", cache=0, **script.arrays(script.room(0) + 1))
    for cache in (1, 2) if pick.one_of(True, False) else (2, 1):
        script.append(cache, pick.one_of(1, 2))
    script.whole()
    return script.call(), bad


@bounded
def tables_once_refused(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a chunk has no room between two tables, which are the same."""
    script = Script(pick, pages=(5, 7, 9))
    for cache in (0, 1):
        script.append(cache, pick.one_of(1, script.page_size, script.page_size + 1))
    first = script.do("table", caches=[0, 1])
    cache = pick.one_of(0, 1)
    bad = script.do("append", cache=cache, **script.arrays(script.room(cache) + 1))
    script.do("table", caches=[1, 0])
    script.append(cache, 1)
    script.do("table", caches=[0, 1])
    script.do("reread_table", step=first)
    return script.call("block_table"), bad


@calls
def bad_arrays(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a key and a value that the pool cannot take."""
    script = Script(pick, pages=(30, 40))
    _past(script)
    given = script.arrays(pick.one_of(2, 3, script.page_size + 1))
    name, other = pick.one_of(("key", "value"), ("value", "key"))
    match pick.one_of(
        "longer", "one", "heads", "head", "dim", "batch", "flat", "head of both", "dim of both", "narrower", "more axes"
    ):
        case "longer":
            given[name] = np.concatenate([given[name], given[name][:, :, :1]], axis=2)
        case "one":
            # One token for all, as broadcasting would have it.
            given[name] = given[name][:, :, :1]
        case "heads":
            given = {key: np.concatenate([x, x[:, :1]], axis=1) for key, x in given.items()}
        case "head" if script.heads > 1:
            given[name] = given[name][:, :1]
        case "head of both" if script.heads > 1:
            given = {key: x[:, :1] for key, x in given.items()}
        case "dim" if script.dim > 1:
            given[name] = given[name][..., :1]
        case "dim of both" if script.dim > 1:
            given = {key: x[..., :1] for key, x in given.items()}
        case "narrower" if script.dim > 1:
            given = {key: x[..., :-1] for key, x in given.items()}
        case "batch":
            given = {key: np.concatenate([x, x], axis=0) for key, x in given.items()}
        case "flat":
            given = {name: given[name][0], other: given[other][0]}
        case "more axes":
            given = {key: x[..., None] for key, x in given.items()}
        case _:
            given = {key: np.concatenate([x, x[..., :1]], axis=3) for key, x in given.items()}
    bad = script.do("append", cache=0, key=given["key"], value=given["value"])
    _go_on(script)
    return script.call(), bad


@calls
def bad_dtypes(pick: Pick) -> tuple[Call, int]:
    """(story, number of the step that must be refused): a key, a value or both in another dtype than the pool's."""
    script = Script(pick, pages=(30, 40))
    _past(script)
    others = [numpy_dtype(name) for name in ("float32", "float16", "bfloat16") if name != script.dtype]
    given, dtype = script.arrays(pick.one_of(1, 2, script.page_size + 1)), pick.one_of(*others)
    with np.errstate(over="ignore"):
        for name in pick.one_of(("key", "value"), ("value",), ("key",)):
            given[name] = given[name].astype(np.float32).astype(dtype)
    bad = script.do("append", cache=0, **given)
    _go_on(script)
    return script.call(), bad


def _past(script: Script) -> None:
    """What a pool may have been through before it is given something bad."""
    for _ in range(script.pick.size(0, 2)):
        script.append(0)
    script.append(1, script.pick.one_of(1, 2))
    script.lengths.setdefault(0, 0)


def _go_on(script: Script) -> None:
    """What shows that a refused step changed nothing."""
    script.whole()
    script.append(0, script.pick.one_of(2, script.page_size))
    script.append(1, 1)
    script.whole()
