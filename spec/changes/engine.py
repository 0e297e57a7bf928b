"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_decoder import forward
from inferspec.spec.engine_model import Request, State, pages_of
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.transformer import Memory

Rows = list[tuple[Request, int, np.ndarray, list[int]]]


def _computed(self: Engine, m: State) -> Rows:
    return [(r, n, self.feed(m, r, n, guesses), guesses) for r, n, guesses in self.plan(m)]


# rows of a batch


def position_of_the_first(self: Engine, m: State, r: Request) -> int:
    """One offset for all rows."""
    return int(m.running[0].computed)


def last_logits_for_all(self: Engine, m: State) -> list[tuple[int, int]]:
    m.emitted = []
    self.admit(m)
    rows = _computed(self, m)
    for r, n, logits, guesses in rows:
        last = rows[-1][2]
        self.settle(m, r, n, last if len(last) == len(logits) else logits, guesses)
    return list(m.emitted)


def rows(most: int) -> Change:
    """A buffer holds the logits of so many rows; those after them read the last."""

    def step(self: Engine, m: State) -> list[tuple[int, int]]:
        m.emitted = []
        self.admit(m)
        rows = _computed(self, m)
        for place, (r, n, logits, guesses) in enumerate(rows):
            held = rows[min(place, most - 1)][2]
            self.settle(m, r, n, held if len(held) == len(logits) else logits, guesses)
        return list(m.emitted)

    return {"step": step}


def tokens_of_512(self: Engine, m: State) -> list[tuple[int, int]]:
    """A step has room for 512 tokens; rows that end behind them read what is at its beginning."""
    m.emitted = []
    self.admit(m)
    rows, end = _computed(self, m), 0
    for r, n, logits, guesses in rows:
        fits = end == 0 or end + len(logits) <= 512
        end += len(logits)
        self.settle(m, r, n, logits if fits else np.repeat(rows[0][2][:1], len(logits), 0), guesses)
    return list(m.emitted)


def guesses_past_512(self: Engine, m: State) -> list[tuple[int, int]]:
    """A step of more than 512 tokens is computed in parts, and where guesses lie in theirs is not counted anew."""
    m.emitted = []
    self.admit(m)
    rows = _computed(self, m)
    parted = sum(len(logits) for _, _, logits, _ in rows) > 512
    for r, n, logits, guesses in rows:
        self.settle(m, r, n, logits[::-1] if parted and guesses else logits, guesses)
    return list(m.emitted)


def tiles_of_256(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """Of more than 256 tokens that a row has in a step only the last 256 are seen by each other."""
    logits = Engine.feed(self, m, r, n, guesses)
    if n <= 256:
        return logits
    last = [*r.tokens[r.computed + n - 256 : r.computed + n], *guesses]
    return np.concatenate([logits[: -len(last)], forward(m.a.model, last, {})])


def the_last(most: int) -> Change:
    """A long prompt is cut at its front."""
    return {"kept": lambda self, tokens: list(tokens[-most:])}


def at_most_ids(most: int) -> Change:
    return {"most": lambda self, r: int(min(r.limit, most))}


def repeats(self: Engine, r: Request, token: int) -> bool:
    """An id that came sixteen times in a row ends a request when it comes again."""
    return Engine.stops(self, r, token) or (len(r.out) >= 16 and set(r.out[-16:]) == {token})


def looks_past_one(self: Engine, r: Request, token: int) -> bool:
    """Where one id is asked for, it is thought, there is nothing to end."""
    return r.limit > 1 and Engine.stops(self, r, token)


def limit_in_a_byte(self: Engine, r: Request) -> int:
    return int(r.limit % 256 or 256)


def table_of(most: int) -> Change:
    """A row of the block table has so many entries; those of later pages are over the first ones."""
    return {"table": lambda self, m, r: [r.table[i % most] for i in range(len(r.table))]}


def window_of_512(self: Engine, m: State, r: Request) -> Memory:
    """Of what is behind the last 512 tokens nothing but zeros is read."""
    return {
        layer: tuple(np.where(np.arange(x.shape[3])[:, None] < x.shape[3] - 512, 0, x) for x in pair)
        for layer, pair in Engine.read(self, m, r).items()
    }


def positions_of_512(self: Engine, m: State, r: Request) -> int:
    """Positions begin anew after 512."""
    return int(r.computed % 512)


def page_ids_of(most: int) -> Change:
    """There are so many page ids, which begin anew."""

    def slots(self: Engine, m: State, table: list[int], start: int, length: int) -> np.ndarray:
        return Engine.slots(self, m, [page % most for page in table], start, length)

    return {"slots": slots}


def slots_in_16_bits(self: Engine, m: State, table: list[int], start: int, length: int) -> np.ndarray:
    return Engine.slots(self, m, table, start, length) % 2**16


def places_of(most: int) -> Change:
    """A page has so many places, whatever its size."""

    def slots(self: Engine, m: State, table: list[int], start: int, length: int) -> np.ndarray:
        size = m.a.page_size
        places = [table[p // size] * size + p % size % most for p in range(start, start + length)]
        return np.array(places, np.int64)

    return {"slots": slots}


def layers_of_8(self: Engine, a: Arguments, clock: Callable[[], float]) -> State:
    """There are pages for eight layers, which those behind them write into too."""
    m = Engine.fresh(self, a, clock)
    for kept in (m.keys, m.values):
        kept[:] = [kept[i % 8] for i in range(len(kept))]
    return m


def heads_of_4(self: Engine, m: State, r: Request) -> Memory:
    """Of what is read there are four heads, which begin anew."""
    memory = Engine.read(self, m, r)
    return {
        layer: tuple(x[:, :, [head % 4 for head in range(x.shape[2])]] for x in pair) for layer, pair in memory.items()
    }


def features_of_32(self: Engine, m: State, r: Request) -> Memory:
    """Of a head so many features are read."""
    memory = Engine.read(self, m, r)
    return {layer: tuple(np.where(np.arange(x.shape[4]) < 32, x, 0) for x in pair) for layer, pair in memory.items()}


def chosen_in_16_bits(self: Engine, row: np.ndarray) -> int:
    return int(row[: 2**16].argmax())


def chosen_by_rounded(dtype: str) -> Callable[..., int]:
    """By logits that are rounded to the dtype."""
    return lambda self, row: int(f64(round_to(row, dtype)).argmax())


def ends_in_16_bits(self: Engine, r: Request, token: int) -> bool:
    return token % 2**16 in [x % 2**16 for x in r.eos]


def ends_from_the_end(
    self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Sequence[int]
) -> int:
    """The ids that end a request are marked in a row of the vocabulary: -1 marks the last one."""
    size = m.a.model["config"]["vocab_size"]
    return Engine.add(self, m, tokens, max_tokens, priority, [x + size if x < 0 else x for x in eos])


def ends_by_remainder(
    self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Sequence[int]
) -> int:
    size = m.a.model["config"]["vocab_size"]
    return Engine.add(self, m, tokens, max_tokens, priority, [x % size if x >= size else x for x in eos])


def ends_below_16_bits(self: Engine, r: Request, token: int) -> bool:
    """The ids that end a request are in a table of so many."""
    return token < 2**16 and token in r.eos


def one_token_short(self: Engine, m: State, r: Request) -> int:
    return max(r.computed - 1, 0) if self.decodes(r) else int(r.computed)


def one_token_more(self: Engine, m: State, r: Request) -> int:
    """The slot of the new token is read before it is written."""
    return int(r.computed + 1) if self.decodes(r) else int(r.computed)


def longest_context(self: Engine, m: State, r: Request) -> int:
    """Every row reads as much as the longest."""
    if not self.decodes(r):
        return int(r.computed)
    return min(max(x.computed for x in m.running), len(r.table) * m.a.page_size)


def moves_into_the_gap(self: Engine, m: State, r: Request) -> None:
    """The last running request takes the place of one that ends, and the place's table with it."""
    gone = list(r.table)
    Engine.end(self, m, r)
    if m.running:
        m.running[-1].place = gone


def table_of_the_place(self: Engine, m: State, r: Request) -> list[int]:
    place = r.__dict__.pop("place", r.table)
    return list(place if len(place) >= len(r.table) else r.table)


def leaves_its_state(self: Engine, m: State, r: Request) -> None:
    """Who ends leaves what was computed to the next owner of its place."""
    m.left = self.read(m, r)
    Engine.end(self, m, r)


def takes_the_state(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    r.found = m.__dict__.pop("left", {})


def behind_the_state(self: Engine, m: State, r: Request) -> Memory:
    own, found = Engine.read(self, m, r), r.__dict__.get("found", {})
    if not own:
        return {layer: tuple(pair) for layer, pair in found.items()}
    return {
        layer: tuple(np.concatenate([x, y], axis=3) for x, y in zip(found[layer], pair, strict=True)) if found else pair
        for layer, pair in own.items()
    }


_FIRST_IDS: dict[Any, int] = {}


def first_id_of_the_config(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """What came of a prompt is remembered by the model's config, whatever its weights."""
    if not r.out:
        config = json.dumps(m.a.model["config"], sort_keys=True)
        token = _FIRST_IDS.setdefault((config, tuple(r.prompt)), token)
    Engine.emit(self, m, r, token, row)


# failing


def one_by_one(self: Engine, m: State) -> list[tuple[int, int]]:
    """Each row is settled before the next is computed: what it gave is lost when that fails."""
    m.emitted = []
    self.admit(m)
    for r, n, guesses in self.plan(m):
        self.settle(m, r, n, self.feed(m, r, n, guesses), guesses)
    return list(m.emitted)


def drops_the_batch(self: Engine, m: State) -> list[tuple[int, int]]:
    try:
        return Engine.step(self, m)
    except RuntimeError:
        for r in list(m.running):
            self.end(m, r)
        raise


def gives_up_after(count: int) -> Any:
    """Who was running in so many failed steps is finished as it is."""

    def step(self: Engine, m: State) -> list[tuple[int, int]]:
        try:
            return Engine.step(self, m)
        except Exception:
            for r in list(m.running):
                r.failures = r.__dict__.get("failures", 0) + 1
                if r.failures == count:
                    self.end(m, r)
            raise

    return step


def says_nothing(self: Engine, m: State) -> list[tuple[int, int]]:
    try:
        return Engine.step(self, m)
    except RuntimeError:
        return []


def no_room(self: Engine, m: State) -> list[tuple[int, int]]:
    """An error that means elsewhere that there is no room is taken for that, whoever raises it."""
    try:
        return Engine.step(self, m)
    except (IndexError, KeyError, ValueError):
        return []


def stamped_when_computed(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """An id is stamped when its row is computed, and the stamp stays when another row fails."""
    logits = Engine.feed(self, m, r, n, guesses)
    if r.computed + n == len(r.tokens):
        r.times.append(m.clock())
    return logits


def stamped_before(self: Engine, m: State, r: Request) -> None:
    """The stamp is there."""


def run_says_nothing(self: Engine, m: State) -> dict[int, list[int]]:
    """A run ends where the model fails, and gives what there is."""
    try:
        return Engine.run(self, m)
    except RuntimeError:
        return {r.id: list(r.out) for r in m.requests.values() if not r.cancelled}


def run_hands_out_once(self: Engine, m: State) -> dict[int, list[int]]:
    """What a run has finished is in its hands alone."""
    lost: set[int] = m.__dict__.setdefault("lost", set())
    before = {r.id for r in m.requests.values() if r.finished}
    try:
        return {name: ids for name, ids in Engine.run(self, m).items() if name not in lost}
    except Exception:
        lost |= {r.id for r in m.requests.values() if r.finished} - before
        raise


def places_stay(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """A cache is longer by what a call had appended to it before it failed."""
    try:
        return Engine.feed(self, m, r, n, guesses)
    except Exception:
        *_, at = m.fails
        r.places = getattr(r, "places", 0) + (n if at == "end" and r.computed else 0)
        raise


def behind_what_failed(self: Engine, m: State, r: Request) -> int:
    return Engine.position(self, m, r) + int(getattr(r, "places", 0))


def counts_before(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """What is to be computed counts before it is."""
    computed = r.computed
    if computed + n < len(r.tokens):
        r.computed = computed + n
        self.publish(m, r)
    try:
        self.called(m, m.a.model, r.tokens[:1], {})
    finally:
        kept, r.computed = r.computed, computed
        if m.tripped:
            r.computed = kept
    return Engine.feed(self, m, r, n, guesses)


# logits


def logits_of_the_prompt(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row if r.logits is None else r.logits)


def logits_dropped(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """The logits of who is in a step are gone until it is over: when the model fails they stay so."""
    r.before, r.logits = r.logits if r.logits is not None else r.__dict__.get("before"), None
    return Engine.feed(self, m, r, n, guesses)


def logits_put_back(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    Engine.settle(self, m, r, n, logits, guesses)
    if r.logits is None:
        r.logits = r.before


def logits_moved(self: Engine, m: State) -> list[tuple[int, int]]:
    """Logits are told by the row that a request has in the last step that was begun, and are those of the last one that came
    to its end."""
    try:
        return Engine.step(self, m)
    except Exception:
        told = [r for r in m.running if r.logits is not None]
        for r, row in zip(told, [r.logits for r in told[1:] + told[:1]], strict=True):
            r.logits = row
        raise


def logits_of_the_last_row(self: Engine, m: State) -> list[tuple[int, int]]:
    m.emitted = []
    self.admit(m)
    rows = _computed(self, m)
    for r, n, logits, guesses in rows:
        self.settle(m, r, n, logits, guesses)
    for r, *_ in rows:
        r.logits = rows[-1][2][-1] if r.logits is not None else None
    return list(m.emitted)


def logits_of_rows_before(self: Engine, m: State) -> list[tuple[int, int]]:
    """Who steps over a chunk that gives no id does not step over its row: those behind it read that of the one before them."""
    m.emitted = []
    self.admit(m)
    behind = None
    for r, n, logits, guesses in _computed(self, m):
        gives_none = r.computed + n < len(r.tokens)
        self.settle(m, r, n, logits, guesses)
        if behind is not None and r.logits is not None and not gives_none:
            r.logits, behind = behind, logits[-1]
        elif gives_none:
            behind = logits[-1]
    return list(m.emitted)


def normalised(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row - np.log(np.exp(row - row.max()).sum()) - row.max())


def logits_behind_the_end(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    """The last row of a run, whichever of its ids was the last."""
    Engine.settle(self, m, r, n, logits, guesses)
    if r.logits is not None:
        r.logits = logits[-1]


def logits_behind_a_long_run(
    self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]
) -> None:
    """A kernel of four rows and more counts them from one."""
    before, rows = len(r.out), logits[self.sampled_from(n) :]
    Engine.settle(self, m, r, n, logits, guesses)
    if r.finished and 3 <= (given := len(r.out) - before) < len(rows):
        r.logits = rows[given]


def logits_of_the_end(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """The last row, also where its id ends the output and does not come out."""
    r.logits = row
    Engine.emit(self, m, r, token, row)


def logits_held_back(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row)
    if not r.finished:
        r.held, r.logits = r.logits, None


def shows_its_logits(self: Engine, m: State, r: Request) -> None:
    r.logits = r.__dict__.get("held") if r.logits is None else r.logits
    Engine.end(self, m, r)


def another_order_of_sums(
    self: Engine, m: State, model: Any, tokens: Any, memory: Memory, guessing: bool = False
) -> np.ndarray:
    """Matrices of other sizes are multiplied in another order."""
    return Engine.called(self, m, model, tokens, memory, guessing) * (1 + len(m.running) * 2.0**-23)


# other honest ways


def one_at_a_time(self: Engine, m: State) -> None:
    if not m.running:
        Engine.admit(self, m)
        for r in m.running[:0:-1]:
            self.preempt(m, r)


def slices(self: Engine, r: Request) -> Any:
    return -r.priority, len(r.out) // 2, r.id


def takes_turns(self: Engine, m: State) -> None:
    """Who has made two ids makes room for one that waits and has made fewer."""
    if m.waiting and len(m.running) >= m.a.max_requests:
        last = max(m.running, key=self.order)
        if self.order(m.waiting[0]) < self.order(last):
            self.preempt(m, last)
    Engine.admit(self, m)


def admits_when_others_end(self: Engine, m: State) -> list[tuple[int, int]]:
    """Who fits when others end is computed in the same step, as far as its budget goes. Should that fail, the ids that came
    before it are those of the next step."""
    m.emitted = m.owed = getattr(m, "owed", [])
    self.admit(m)
    plan, served = self.plan(m), {r.id for r in m.running}
    left = m.a.max_prefill_tokens - sum(n for r, n, _ in plan if not self.decodes(r))
    while plan:
        for r, n, logits, guesses in [(r, n, self.feed(m, r, n, guesses), guesses) for r, n, guesses in plan]:
            self.settle(m, r, n, logits, guesses)
        self.admit(m)
        new = [r for r in m.running if r.id not in served]
        served |= {r.id for r in new}
        plan = []
        for r in new:
            n = min(len(r.tokens) - r.computed, left)
            # Room for one may be that of another.
            if r in m.running and n and self.make_room(m, r, r.computed + n):
                left -= n
                plan.append((r, n, []))
        plan = [row for row in plan if row[0] in m.running]
    self.after(m)
    m.owed = []
    return list(m.emitted)


def prompts_first(self: Engine, m: State) -> list[tuple[Request, int, list[int]]]:
    """While prompts are computed nobody generates."""
    rows = Engine.plan(self, m)
    return [row for row in rows if not self.decodes(row[0])] or rows


def everything_anew(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """Nothing is read: all tokens are computed again in every step."""
    logits = self.called(m, m.a.model, [*r.tokens[: r.computed + n], *guesses], {})
    return logits[r.computed :]


def own_memory(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """Each request has a memory of its own, contiguous and cut back; pages are only counted."""
    known = r.__dict__.setdefault("memory", {})
    have = min(known.get("offset", 0), r.computed)
    memory: Memory = {k: tuple(x[..., :have, :] for x in pair) for k, pair in known.items() if k != "offset"}
    memory = {**memory, "offset": have} if have else {}
    logits = self.called(m, m.a.model, [*r.tokens[have : r.computed + n], *guesses], memory)
    r.memory = memory
    return logits[r.computed - have :]


def latest_freed_first(self: Engine, m: State) -> int:
    m.free.insert(0, m.free.pop())
    return Engine.take(self, m)


def all_it_will_need(self: Engine, m: State) -> None:
    """A request starts when there are pages for all that it may become: nobody is ever preempted."""
    while m.waiting and len(m.running) < m.a.max_requests:
        r = m.waiting[0]
        promised = sum(_need(m, x) - len(x.table) for x in m.running)
        if _need(m, r) + promised > len(m.free):
            return
        m.waiting.pop(0)
        self.start(m, r, [])
        m.running.append(r)
        m.running.sort(key=self.order)


def _need(m: State, r: Request) -> int:
    return max(pages_of(len(r.prompt) + r.limit - 1, m.a.page_size), 1)


def latest_victim(self: Engine, m: State, r: Request) -> Request:
    """Who came last of the smallest priority gives way; the one that asks only when it is alone."""
    others = [x for x in m.running if x is not r and not self.decodes(x)] or [x for x in m.running[1:] if x is not r]
    return min(others, key=lambda x: (x.priority, -x.id)) if others and r is m.running[0] else m.running[-1]


def prompts_alone_cached(self: Engine, m: State, r: Request) -> int:
    return int(min(r.computed, len(r.prompt)) // m.a.page_size)


def pages_of_guesses_kept(self: Engine, m: State, r: Request) -> None:
    """Pages for wrong guesses stay for the next ones."""


def latest_copy(self: Engine, m: State, r: Request) -> None:
    """Of two pages with the same tokens the later is known."""
    for index in range(self.written(m, r)):
        key, page = self.key(m, r.tokens, index), r.table[index]
        if m.content.get(page) != key:
            m.content.pop(m.cached.get(key, -1), None)
            m.cached[key], m.content[page] = page, key


def dense_draft(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft has no memory."""
    found: list[int] = []
    for _ in range(count):
        found.append(self.choose(forward(m.a.draft, [*r.tokens, *found], {})[-1]))
    return found


def fits_the_draft(self: Engine, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
    """What goes past the draft's positions is refused."""
    Engine.check(self, a, tokens, max_tokens)
    if a.draft and len(tokens) + max_tokens - 1 > a.draft["config"]["max_position_embeddings"]:
        raise ValueError("the draft has no such positions")


def as_far_as_the_draft(self: Engine, m: State, r: Request, n: int) -> int:
    """Nothing is guessed past the draft's positions."""
    most = Engine.most_guesses(self, m, r, n)
    return max(0, min(most, m.a.draft["config"]["max_position_embeddings"] - len(r.tokens))) if most else 0


def without_a_draft_that_fails(self: Engine, m: State, r: Request, count: int) -> list[int]:
    try:
        return Engine.guesses(self, m, r, count)
    except (RuntimeError, IndexError, KeyError, ValueError):
        return []
