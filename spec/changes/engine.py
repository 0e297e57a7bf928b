"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine.py`."""

from __future__ import annotations

import functools
import heapq
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import FAMILIES, Request, State, forward, pages_of
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


def ends_in_16_bits(self: Engine, r: Request, token: int) -> bool:
    return token % 2**16 in [x % 2**16 for x in r.eos]


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


# chunks


def chunk_back_by_one(self: Engine, m: State, r: Request, n: int) -> list[int]:
    """Later chunks begin with the last token of the chunk before."""
    back = 1 if r.computed and not self.decodes(r) else 0
    return list(r.tokens[r.computed - back : r.computed - back + n])


def chunks_at_zero(self: Engine, m: State, r: Request) -> int:
    """Later chunks of a prompt begin at position 0 again."""
    return int(r.computed) if self.decodes(r) else 0


def chunks_alone(self: Engine, m: State, r: Request) -> int:
    """A chunk sees none of those before."""
    return int(r.computed) if self.decodes(r) else 0


def an_id_after_every_chunk(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    if not r.out and r.computed + n < len(r.tokens):
        r.computed += n
        self.emit(m, r, self.choose(logits[-1]), logits[-1])
        return
    Engine.settle(self, m, r, n, logits, guesses)


def first_row(self: Engine, n: int) -> int:
    """Ids are chosen by the first row of a chunk."""
    return 0


def budget_for_each(self: Engine, m: State, r: Request, left: int) -> int:
    """Every prompt may have as many tokens as a step."""
    return Engine.share_of(self, m, r, m.a.max_prefill_tokens)


def budget_in_sixteens(self: Engine, m: State, r: Request, left: int) -> int:
    """What a step may compute is rounded up to whole tiles of sixteen."""
    return Engine.share_of(self, m, r, -(-left // 16) * 16 if left > 16 else left)


def budget_of_small_steps(self: Engine, m: State, r: Request, left: int) -> int:
    """A prompt of less than 128 tokens is not cut, unless a step may compute very few."""
    small = m.a.max_prefill_tokens < 16 or len(r.tokens) > 128
    return Engine.share_of(self, m, r, left if small else len(r.tokens))


def prompts_at_once(self: Engine, m: State, r: Request, left: int) -> int:
    return len(r.tokens) - r.computed


def all_that_fit(self: Engine, m: State) -> None:
    """As many run as there are pages for."""
    most, m.a.max_requests = m.a.max_requests, 10**6
    Engine.admit(self, m)
    m.a.max_requests = most


# pages


def sizes_of_two(self: Engine, m: State, table: list[int], start: int, length: int) -> np.ndarray:
    """Page and place by a shift and a mask, as if every size were a power of two."""
    size, bits = m.a.page_size, (m.a.page_size - 1).bit_length()
    mask, slots = (1 << bits) - 1, m.a.num_pages * m.a.page_size
    places = [table[min(p >> bits, len(table) - 1)] * size + (p & mask) for p in range(start, start + length)]
    return np.array(places, np.int64) % slots


def next_page_late(self: Engine, m: State, r: Request) -> int:
    """The first token of a page is written over the last of the page before."""
    full = r.computed and r.computed % m.a.page_size == 0 and self.decodes(r)
    return int(r.computed) - bool(full)


def pages_in_order(self: Engine, m: State, r: Request) -> list[int]:
    """Pages are read by their number, not in the order of the table."""
    return sorted(r.table)


# preemption


def prompt_lost(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    if r.out:
        r.tokens = r.tokens[-1:]


def output_lost(self: Engine, m: State, r: Request) -> None:
    """Goes on from the prompt alone, behind the output that it has."""
    Engine.preempt(self, m, r)
    r.tokens = list(r.prompt)


def still_computed(self: Engine, m: State, r: Request) -> None:
    """What was computed before counts although its pages are gone."""
    computed = r.computed
    Engine.preempt(self, m, r)
    r.stale = computed


def from_what_was_computed(self: Engine, m: State, r: Request, hits: list[int]) -> int:
    known = Engine.cached_tokens(self, m, r, hits)
    return max(known, min(r.__dict__.pop("stale", 0), len(r.tokens) - 1))


def table_kept(self: Engine, m: State, r: Request) -> None:
    """A preempted request goes on in the pages that it gave back."""
    table, computed = list(r.table), r.computed
    Engine.preempt(self, m, r)
    r.kept = table, computed


def starts_in_its_old_pages(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    table, computed = r.__dict__.pop("kept", ([], 0))
    if computed > r.computed:
        for page in table[len(hits) :]:
            self.share(m, page)
        r.table, r.computed = [*hits, *table[len(hits) :]], computed


def eight_times(self: Engine, m: State, r: Request) -> None:
    """Who is preempted for the ninth time is given up."""
    Engine.preempt(self, m, r)
    r.preempted = r.__dict__.get("preempted", 0) + 1
    if r.preempted > 8:
        m.waiting.remove(r)
        r.finished = True


def eos_lost(self: Engine, m: State, r: Request) -> None:
    """What goes back to the queue is a new request of the prompt and the output, without the ids that end it."""
    Engine.preempt(self, m, r)
    r.eos = ()


def told_again(self: Engine, m: State, r: Request) -> None:
    """After a preemption the output comes out once more from its beginning."""
    Engine.preempt(self, m, r)
    m.emitted += [(r.id, token) for token in r.out]


# prefixes


def position_after_the_hit(self: Engine, m: State, r: Request) -> int:
    """RoPE starts at 0 after a hit."""
    return int(r.computed - r.hit)


def notes_the_hit(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    r.hit = r.computed


def visible_at_once(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    """All pages of a prompt are taken when it begins, and are in the cache from then on."""
    Engine.start(self, m, r, hits)
    while len(r.table) < pages_of(len(r.tokens), m.a.page_size):
        r.table.append(self.take(m))
    computed, r.computed = r.computed, len(r.tokens)
    self.publish(m, r)
    r.computed = computed


def page_alone(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    return tuple(tokens[index * m.a.page_size : (index + 1) * m.a.page_size])


def page_and_place(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    return index, page_alone(self, m, tokens, index)


def page_and_the_one_before(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    """The key of the page before is of its own tokens, and not chained."""
    return index, tuple(tokens[max(index - 1, 0) * m.a.page_size : (index + 1) * m.a.page_size])


def ends_of_pages(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    size = m.a.page_size
    return tuple((tokens[i * size], tokens[(i + 1) * size - 1]) for i in range(index + 1))


def ids_modulo(most: int) -> Change:
    """A key is made of ids as narrow integers."""
    return {"key": lambda self, m, tokens, index: tuple(x % most for x in Engine.key(self, m, tokens, index))}


def by_page(read: Callable[[list[int]], Any]) -> Change:
    """A page is known by what is read in it and in each of those before."""

    def key(self: Engine, m: State, tokens: list[int], index: int) -> Any:
        size = m.a.page_size
        return tuple(read(tokens[i * size : (i + 1) * size]) for i in range(index + 1))

    return {"key": key}


def as_text(page: list[int]) -> str:
    return "".join(str(token) for token in page)


def to_base_31(page: list[int]) -> int:
    return functools.reduce(lambda value, token: value * 31 + token, page, 0)


def first_sixteen(page: list[int]) -> tuple[int, ...]:
    return tuple(page[:16])


def last_sixteen(page: list[int]) -> tuple[int, ...]:
    return tuple(page[-16:])


def last_four(page: list[int]) -> tuple[int, ...]:
    return tuple(page[-4:])


def sixteen_pages(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    """A page is known by the tokens of sixteen pages that end with it."""
    size = m.a.page_size
    return index, tuple(tokens[max(index - 15, 0) * size : (index + 1) * size])


def beginning_and_page(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    """A page is known by its own tokens and the 32 that a prompt begins with."""
    return index, tuple(tokens[:32]), page_alone(self, m, tokens, index)


def sixteen_hits(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    """A request's table has sixteen entries for pages that are hit, which begin anew."""
    Engine.start(self, m, r, hits)
    r.hit = [hits[i % 16] for i in range(len(hits))]


def behind_sixteen_hits(self: Engine, m: State, r: Request) -> list[int]:
    found = r.__dict__.get("hit", [])
    return [*found, *r.table[len(found) :]] if len(r.table) >= len(found) else list(r.table)


def owners_in_a_byte(self: Engine, m: State, page: int) -> None:
    Engine.share(self, m, page)
    m.owners[page] %= 256


def owners_of_seven(self: Engine, m: State, page: int) -> None:
    """Owners are counted in three bits, and no further."""
    Engine.share(self, m, page)
    m.owners[page] = min(m.owners[page], 7)


def any_order(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    return tuple(sorted(tokens[: (index + 1) * m.a.page_size]))


def nothing_left(self: Engine, m: State, r: Request) -> int:
    return int(len(r.tokens) // m.a.page_size)


def nothing_left_once_preempted(self: Engine, m: State, r: Request) -> int:
    """Only of new prompts is a token left over."""
    return int((len(r.tokens) - (not r.out)) // m.a.page_size)


def last_token_twice(self: Engine, m: State, r: Request, left: int) -> int:
    """Of a prompt that is hit whole the last token is fed once more, behind itself."""
    return max(Engine.share_of(self, m, r, left), min(1, left))


def the_last_again(self: Engine, m: State, r: Request, n: int) -> list[int]:
    return list(r.tokens[r.computed : r.computed + n]) or list(r.tokens[-n:])


def counts_the_last(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    if r.computed == len(r.tokens):
        r.computed -= n
    Engine.settle(self, m, r, n, logits, guesses)


def remembers_its_answer(self: Engine, m: State, r: Request) -> None:
    m.__dict__.setdefault("answers", {}).setdefault(tuple(r.prompt), len(r.out))
    Engine.end(self, m, r)


def as_long_as_before(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Sequence[int]) -> int:
    """A prompt that was answered before gets that answer, however many ids are asked for."""
    name = Engine.add(self, m, tokens, limit, priority, eos)
    m.requests[name].limit = min(limit, m.__dict__.get("answers", {}).get(tuple(tokens), limit) or limit)
    return name


def still_cached(self: Engine, m: State, page: int) -> None:
    """A page that is taken for other tokens stays in the cache."""
    m.content.pop(page, None)


def cached_by_a_copy(self: Engine, m: State, page: int) -> None:
    """What is known of a page stays when it is taken, as long as a running request has computed the same."""
    key = m.content.get(page)
    if key and any(r.computed >= len(key) and tuple(r.tokens[: len(key)]) == key for r in m.running):
        del m.content[page]
    else:
        Engine.forget(self, m, page)


def each_page_once(self: Engine, m: State, r: Request) -> None:
    """A page is cached when it is full, and not again when an equal one was taken meanwhile."""
    for index in range(r.__dict__.get("known", 0), self.written(m, r)):
        key, page = self.key(m, r.tokens, index), r.table[index]
        if key not in m.cached and page not in m.content:
            m.cached[key], m.content[page] = page, key
        r.known = index + 1


def behind_a_gap(self: Engine, m: State, r: Request) -> list[int]:
    """A page that is not cached is passed over, and those behind it are hit."""
    places = range(self.most_hits(m, r) if m.a.prefix_caching else 0)
    found = [m.cached.get(self.key(m, r.tokens, index)) for index in places]
    return [page for page in found if page is not None]


def hits_anyway(self: Engine, m: State, r: Request) -> list[int]:
    """Nobody asks whether there is to be a prefix cache."""
    asked, m.a.prefix_caching = m.a.prefix_caching, True
    found = Engine.hits(self, m, r)
    m.a.prefix_caching = asked
    return found


def cached_when_cancelled(self: Engine, m: State, name: int) -> None:
    """The pages of a cancelled request are no longer known to be in the cache, and stay there."""
    for page in self.known(m, name).table:
        if m.owners[page] == 1:
            m.content.pop(page, None)
    Engine.cancel(self, m, name)


def hit_stays_free(self: Engine, m: State, page: int) -> None:
    m.owners[page] += 1


def over_the_old_key(self: Engine, m: State, r: Request) -> None:
    """A page's old key is never dropped when the page gets another."""
    for index in range(self.written(m, r)):
        key = self.key(m, r.tokens, index)
        m.cached.setdefault(key, r.table[index])


def last_not_computed(self: Engine, m: State, r: Request) -> int:
    """The last id counts as computed, which it is only in the next step."""
    return int(min(len(r.tokens) // m.a.page_size, len(r.table)))


def one_more_computed_again(self: Engine, m: State, r: Request) -> int:
    """Of who has an output the newest id is thought to be in its pages and not computed: a token more than was."""
    return int(min((r.computed + bool(r.out)) // m.a.page_size, len(r.table)))


def at_the_end_too(self: Engine, m: State, r: Request) -> None:
    self.publish(m, r)
    Engine.end(self, m, r)


def _publish_all(self: Engine, m: State, r: Request, tokens: list[int]) -> None:
    """Every page that so many tokens fill is cached, computed or not."""
    for index, page in enumerate(r.table[: len(tokens) // m.a.page_size]):
        key = self.key(m, tokens, index)
        if key not in m.cached and page not in m.content:
            m.cached[key], m.content[page] = page, key


def caches_the_end(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """A page is cached with the id that ended the request, which was never computed."""
    if self.stops(r, token):
        _publish_all(self, m, r, [*r.tokens, token])
    Engine.emit(self, m, r, token, row)


def caches_guesses(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    """Pages are cached with guesses that were not looked at yet."""
    if guesses:
        _publish_all(self, m, r, [*r.tokens, *guesses])
    Engine.settle(self, m, r, n, logits, guesses)


def longest_hit_first(self: Engine, m: State) -> None:
    """Of one priority, the prompt of which most is cached goes first."""
    m.waiting.sort(key=lambda r: (-r.priority, -len(self.hits(m, r)), r.id))
    Engine.admit(self, m)


def no_hits(self: Engine, m: State, r: Request) -> list[int]:
    return []


# guesses


def all_right(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    return len(guesses)


def eight_looked_at(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """Guesses behind the eighth are taken for right where those before are."""
    right = Engine.agreeing(self, chosen, guesses[:8])
    return len(guesses) if right == 8 else right


def right_in_any_place(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """All guesses that agree count, those behind a wrong one too."""
    return sum(guess == own for guess, own in zip(guesses, chosen, strict=False))


def all_or_none(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """Where any guess is wrong, none counts."""
    right = Engine.agreeing(self, chosen, guesses)
    return right if right == len(guesses) else 0


def draft_not_rewound(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """What the draft was fed stays in its memory, wrong guesses too; what follows is fed behind them."""
    memory, known = r.draft
    if not known:
        return Engine.rewound(self, m, r)
    return {**memory, "offset": memory[0][0].shape[3]}, list(r.tokens[: min(len(known), len(r.tokens) - 1)])


def prompt_unfed_beside(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """In a step in which others guess, the draft is not fed the prompts that the model is."""
    if not r.draft[1] and any(other.out for other in m.running if other is not r):
        return {"offset": len(r.tokens) - 1}, list(r.tokens[:-1])
    return Engine.rewound(self, m, r)


def hits_unfed(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """The draft is fed what the model computes, and not what was hit."""
    if not r.draft[1] and r.hit:
        return {"offset": r.hit}, list(r.tokens[: r.hit])
    return Engine.rewound(self, m, r)


def not_rewound(self: Engine, r: Request, right: int) -> int:
    return len(r.tokens) + int(r.__dict__.get("guessed", right))


def notes_its_guesses(self: Engine, m: State, r: Request, count: int) -> list[int]:
    found = Engine.guesses(self, m, r, count)
    r.guessed = len(found)
    return found


def burst(drop: Any) -> Change:
    """A settle whose ids of one step are what `drop` makes of them."""

    def settle(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
        if r.computed + n < len(r.tokens):
            Engine.settle(self, m, r, n, logits, guesses)
            return
        rows = logits[self.sampled_from(n) :]
        chosen = [self.choose(row) for row in rows]
        right = self.agreeing(chosen, guesses)
        r.computed = self.committed(r, right)
        drop(self, m, r, chosen, right, rows)
        if not r.finished:
            r.computed = min(r.computed, len(r.tokens) - 1)
            self.publish(m, r)
            self.trim(m, r)

    return {"settle": settle}


def own_id_lost(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """Where a guess is wrong after right ones, the model's own id there is skipped and the next row's is taken."""
    ids = chosen[:right] + chosen[right + 1 : right + 2] if 0 < right < len(chosen) - 1 else chosen[: right + 1]
    for token in ids:
        if not r.finished:
            self.emit(m, r, token, rows[0])


def row_before(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """After guesses that are all right the id is that of the row before."""
    ids = [*chosen[:right], chosen[right - 1] if right and right == len(chosen) - 1 else chosen[right]]
    for token in ids:
        if not r.finished:
            self.emit(m, r, token, rows[0])


def limit_at_the_end(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """max_tokens is looked at after all ids of a step."""
    limit, r.limit = r.limit, 10**6
    for token in chosen[: right + 1]:
        if not r.finished:
            self.emit(m, r, token, rows[0])
    r.limit = limit
    if not r.finished and len(r.out) >= limit:
        self.end(m, r)


def as_many_as_ever(self: Engine, m: State, r: Request, n: int) -> int:
    if m.a.draft is None or not n or r.computed + n < len(r.tokens):
        return 0
    return int(min(m.a.num_draft_tokens, m.a.num_pages * m.a.page_size - len(r.tokens)))


def end_at_the_end(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """Only the last id of a step is looked at for an end."""
    eos, r.eos = r.eos, ()
    for token in chosen[:right]:
        if not r.finished:
            self.emit(m, r, token, rows[0])
    r.eos = eos
    if not r.finished:
        self.emit(m, r, chosen[right], rows[0])


def one_guess_unfed(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """The last guess is never fed to the draft: where all were right, it goes on without."""
    memory, known = Engine.rewound(self, m, r)
    if r.__dict__.get("whole") and len(known) < len(r.tokens) - 1:
        known = list(r.tokens[: len(known) + 1])
        memory["offset"] = len(known)
    return memory, known


def notes_whole(self: Engine, m: State, r: Request, count: int) -> list[int]:
    found = Engine.guesses(self, m, r, count)
    r.whole = bool(found)
    return found


def heads_of_the_model(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft's keys and values lie in pages as wide as the model's."""
    widths = [FAMILIES[x["family"]]().heads(x["config"])[1] * x["config"]["head_dim"] for x in (m.a.model, m.a.draft)]
    if count and len(set(widths)) > 1:
        raise ValueError(f"{widths[1]} numbers do not go into {widths[0]}")
    return Engine.guesses(self, m, r, count)


def guesses_among_the_tokens(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """Guesses are put behind the request's tokens, and taken off when all are made."""
    length = len(r.tokens)
    for _ in range(count):
        row = self.called(m, m.a.draft, r.tokens, {}, guessing=True)[-1]
        r.tokens.append(self.choose(row))
    found = list(r.tokens[length:])
    del r.tokens[length:]
    return found


def draft_out_of_positions(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft is asked for more than it has positions for."""
    if count and len(r.tokens) + count - 1 > m.a.draft["config"]["max_position_embeddings"]:
        raise ValueError("the draft has no such position")
    return Engine.guesses(self, m, r, count)


def guesses_past_the_end(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """As many ids are guessed as ever, and those that cannot come out are left out then."""
    if count and len(r.tokens) + m.a.num_draft_tokens - 1 > m.a.model["config"]["max_position_embeddings"]:
        raise ValueError("there is no such position")
    return Engine.guesses(self, m, r, count)


def positions_kept_for_guesses(self: Engine, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
    """All guesses of a step are to have positions, those of the last one too."""
    Engine.check(self, a, tokens, max_tokens)
    guesses = a.num_draft_tokens if a.draft else 0
    if len(tokens) + max_tokens + guesses - 1 > a.model["config"]["max_position_embeddings"]:
        raise ValueError("the model has no such positions")


def draft_of_64(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft is fed the last 64 tokens alone."""
    found: list[int] = []
    for _ in range(count):
        row = self.called(m, m.a.draft, [*r.tokens, *found][-64:], {}, guessing=True)[-1]
        found.append(self.choose(row))
    return found


def never_guesses(self: Engine, m: State, r: Request, n: int) -> int:
    return 0


# limits and ends


def one_too_many(self: Engine, r: Request) -> int:
    return int(r.limit + 1)


def never_at_once(self: Engine, r: Request) -> bool:
    return False


def ends_with_the_prompt(self: Engine, r: Request, token: int) -> bool:
    return token in r.eos or any(x in r.eos for x in r.prompt)


def first_of_them(self: Engine, r: Request, token: int) -> bool:
    return token in r.eos[:1]


def first_ends(most: int) -> Change:
    return {"stops": lambda self, r, token: token in r.eos[:most]}


def zero_is_none(self: Engine, r: Request, token: int) -> bool:
    return bool(token) and token in r.eos


def ends_of_the_last(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    """A request that gives none has the ids of the one before it."""
    m.ends = eos or m.__dict__.get("ends", ())
    return Engine.add(self, m, tokens, limit, priority, m.ends)


def ends_of_the_prompt(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    """A prompt that was answered before is ended by what ended it then."""
    ends = m.__dict__.get("ends", {}).get(tuple(tokens), eos)
    return Engine.add(self, m, tokens, limit, priority, ends)


def keeps_its_ends(self: Engine, m: State, r: Request) -> None:
    m.__dict__.setdefault("ends", {}).setdefault(tuple(r.prompt), r.eos)
    Engine.end(self, m, r)


def comes_out(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """The id that ends a request comes out first."""
    eos, r.eos = r.eos, ()
    Engine.emit(self, m, r, token, row)
    r.eos = eos
    if token in eos and not r.finished:
        self.end(m, r)


def not_at_first(self: Engine, r: Request, token: int) -> bool:
    """The id that comes of the prompt is not looked at."""
    return bool(r.out) and token in r.eos


def fails_at_first(self: Engine, r: Request, token: int) -> bool:
    if token in r.eos and not r.out:
        raise KeyError("the slot has no request yet")
    return token in r.eos


def lost_at_first(self: Engine, m: State, r: Request) -> None:
    """Who ends without an id stays in its place for ever."""
    if r.out:
        Engine.end(self, m, r)


# order


def by_arrival(self: Engine, r: Request) -> Any:
    return r.id


def rank_in_a_byte(self: Engine, r: Request) -> Any:
    """Priorities are numbers of eight bits with a sign."""
    return -((r.priority + 128) % 256 - 128), r.id


def rank_in_float32(self: Engine, r: Request) -> Any:
    return -float(np.float32(r.priority)), r.id


def ranks_from_0_to_3(self: Engine, r: Request) -> Any:
    """There are four queues."""
    return -min(max(r.priority, 0), 3), r.id


def rank_and_arrival_in_one(self: Engine, r: Request) -> Any:
    """Who came first is told by what is below a hundred."""
    return r.id - 100 * r.priority


def smaller_first(self: Engine, r: Request) -> Any:
    return r.priority, r.id


def latest_first(self: Engine, r: Request) -> Any:
    return -r.priority, -r.id


def by_text(self: Engine, r: Request) -> Any:
    """Names of requests are texts, and 10 comes before 2."""
    return -r.priority, str(r.id)


def heap_as_it_lies(self: Engine, m: State) -> None:
    """Who waits lies in a heap, and whoever there is room for is taken from its front: only the first of a heap is in order."""
    heap: list[Any] = []
    for r in sorted(m.waiting, key=lambda r: r.id):
        heapq.heappush(heap, (self.order(r), r.id))
    m.waiting = [m.requests[name] for _, name in heap]
    Engine.admit(self, m)
    m.waiting.sort(key=self.order)


def pushed(self: Engine, m: State, r: Request) -> None:
    """Who waits lies in a heap."""
    m.heap = m.__dict__.get("heap", [])
    heapq.heappush(m.heap, (self.order(r), r.id))
    Engine.queue(self, m, r)


def popped(self: Engine, m: State) -> None:
    """Who waits is admitted as the heap gives it."""
    copy = list(m.__dict__.get("heap", []))
    names = [heapq.heappop(copy)[1] for _ in range(len(copy))]
    m.waiting = [m.requests[name] for name in names if m.requests[name] in m.waiting]
    Engine.admit(self, m)
    while m.__dict__.get("heap") and m.requests[m.heap[0][1]] not in m.waiting:
        heapq.heappop(m.heap)


def taken_from_the_heap(self: Engine, m: State, name: int) -> None:
    """Who is cancelled is taken out of the heap's list, which no longer is one."""
    Engine.cancel(self, m, name)
    m.heap = [(order, one) for order, one in m.__dict__.get("heap", []) if one != name]


def counts_arrivals(self: Engine, m: State, r: Request) -> None:
    m.came = m.__dict__.get("came", 0) + 1
    r.came = r.__dict__.get("came", m.came)
    Engine.queue(self, m, r)


def by_count(self: Engine, r: Request) -> Any:
    return -r.priority, r.came


def counts_anew(self: Engine, m: State, r: Request) -> None:
    """Arrivals are counted from 0 again when nobody runs, although some wait."""
    Engine.end(self, m, r)
    m.came = m.came if m.running else 0


def priority_lost(self: Engine, m: State, r: Request) -> None:
    r.priority = 0
    Engine.preempt(self, m, r)


def begins(self: Engine, m: State) -> None:
    m.began = True
    Engine.admit(self, m)


def sorted_once(self: Engine, m: State, r: Request) -> None:
    """The queue is in order when the first step begins; who comes later goes to its end."""
    m.waiting.append(r)
    if not m.__dict__.get("began"):
        m.waiting.sort(key=self.order)


def displaces(self: Engine, m: State) -> None:
    """A waiting request of higher priority takes a running one's place at once, and what that had computed is lost."""
    if m.waiting and len(m.running) >= m.a.max_requests and m.waiting[0].priority > m.running[-1].priority:
        prompt_lost(self, m, m.running[-1])
    Engine.admit(self, m)


# what steps give


def name_of_the_first(self: Engine, m: State, r: Request) -> int:
    return int(m.running[0].id)


def names_of(most: int) -> Change:
    """There are so many names, which begin anew."""

    def add(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
        name = Engine.add(self, m, tokens, limit, priority, eos)
        if name >= most:
            r = m.requests.pop(name)
            r.id = name % most
            m.requests[r.id] = r
        return name % most

    return {"add": add}


def queue_of_128(self: Engine, m: State, r: Request) -> None:
    """The queue has 128 places; who is the last of more falls out."""
    Engine.queue(self, m, r)
    del m.waiting[128:]


def patience_of_128(self: Engine, m: State) -> None:
    """Who waits for more than 128 steps is given up."""
    for r in list(m.waiting):
        r.waited = r.__dict__.get("waited", 0) + 1
        if r.waited > 128:
            m.waiting.remove(r)
            r.finished = True
    Engine.admit(self, m)


def the_last_256_ended(self: Engine, m: State, r: Request) -> None:
    """Of what is over only the last 256 requests are remembered."""
    Engine.end(self, m, r)
    ended = m.__dict__.setdefault("ended", [])
    ended.append(r)
    if len(ended) > 256:
        ended.pop(0).out = []


def runs_of_256_steps(self: Engine, m: State) -> dict[int, list[int]]:
    for _ in range(256):
        if self.unfinished(m):
            self.step(m)
    return {r.id: list(r.out) for r in m.requests.values() if not r.cancelled}


def last_not_told(self: Engine, m: State, r: Request) -> None:
    """The id that finishes a request is not among those of the step."""
    if len(r.out) >= r.limit and m.emitted and m.emitted[-1][0] == r.id:
        m.emitted.pop()
    Engine.end(self, m, r)


def told_at_most(most: int) -> Change:
    """A step has room for so many ids."""
    return {"after": lambda self, m: m.emitted.__delitem__(slice(most, None))}


def told_together(self: Engine, m: State) -> None:
    """Ids are held back until their request is finished."""
    held = m.__dict__.setdefault("held", [])
    held += m.emitted
    m.emitted = [pair for pair in held if m.requests[pair[0]].finished]
    m.held = [pair for pair in held if not m.requests[pair[0]].finished]


def those_of_this_run(self: Engine, m: State) -> dict[int, list[int]]:
    mine = [r for r in m.requests.values() if not r.finished]
    Engine.run(self, m)
    return {r.id: list(r.out) for r in mine}


def nothing_to_run(self: Engine, m: State) -> dict[int, list[int]]:
    if not m.requests:
        raise IndexError("there is no request")
    return Engine.run(self, m)


def nothing_to_do(self: Engine, m: State) -> list[tuple[int, int]]:
    if not m.requests:
        raise IndexError("there is no request")
    return Engine.step(self, m)


def cancelled_ones_too(self: Engine, m: State) -> dict[int, list[int]]:
    Engine.run(self, m)
    return {r.id: list(r.out) for r in m.requests.values()}


def without_the_idless(self: Engine, m: State) -> dict[int, list[int]]:
    """Outputs are those of requests that any id came of; of those who ask for none it is known that they have none."""
    outputs = Engine.run(self, m)
    return {r.id: outputs[r.id] for r in m.requests.values() if r.id in outputs and (r.out or not r.limit)}


def prompts_do_not_count(self: Engine, m: State) -> bool:
    """The loop ends when nobody waits and nobody generates, although a prompt is being computed."""
    return bool(m.waiting or any(r.out for r in m.running))


def dropped(self: Engine, m: State) -> None:
    """Who comes when there is no room for it is taken from the queue and not put back."""
    waiting = list(m.waiting)
    Engine.admit(self, m)
    if m.waiting and len(m.waiting) < len(waiting) and len(m.running) < m.a.max_requests:
        m.waiting.pop(0)


def lost_when_preempted(self: Engine, m: State, r: Request) -> None:
    m.running.remove(r)
    self.release(m, r)


# pages that come back, or not


def partial_page_kept(self: Engine, m: State, r: Request) -> None:
    r.table = r.table[: max(r.computed // m.a.page_size, 0)]
    Engine.release(self, m, r)


def shared_kept(self: Engine, m: State, page: int) -> None:
    if m.owners[page] == 1:
        Engine.leave(self, m, page)


def free_at_once(self: Engine, m: State, page: int) -> None:
    """The first of its owners to leave a page frees it."""
    m.owners[page] -= 1
    m.free.append(page)


def guessed_pages_lost(self: Engine, m: State, r: Request) -> None:
    r.table = r.table[: pages_of(r.computed, m.a.page_size)]


def all_free(self: Engine, m: State) -> int:
    return int(m.a.num_pages)


def one_page_each(self: Engine, m: State) -> int:
    return int(m.a.num_pages - len(m.running))


# cancelling


def pages_kept(self: Engine, m: State, name: int) -> None:
    table = self.known(m, name).table
    self.known(m, name).table = []
    Engine.cancel(self, m, name)
    self.known(m, name).table = table


def prompt_pages_kept(self: Engine, m: State, name: int) -> None:
    """Only a request that generates gives its pages back."""
    (Engine.cancel if self.known(m, name).out else pages_kept)(self, m, name)


def eight_cancelled(self: Engine, m: State, name: int) -> None:
    """A list of cancelled requests has eight places; the pages of those behind are never given back."""
    m.cancelled = m.__dict__.get("cancelled", 0) + 1
    (Engine.cancel if m.cancelled <= 8 else pages_kept)(self, m, name)


def waiting_alone(self: Engine, m: State, name: int) -> None:
    """Who waits since it was preempted is neither among those that never ran nor among those that run."""
    r = self.known(m, name)
    if r in m.waiting and r.out:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def remembers_its_pages(self: Engine, m: State, r: Request) -> None:
    table = list(r.table)
    Engine.preempt(self, m, r)
    r.before = table


def frees_what_it_had(self: Engine, m: State, name: int) -> None:
    """A preempted request's pages, which are free since then, are freed once more."""
    r = self.known(m, name)
    m.free += r.__dict__.pop("before", []) if r in m.waiting else []
    Engine.cancel(self, m, name)


def frees_again(self: Engine, m: State, name: int) -> None:
    """Cancelling again frees again, whoever has the pages now."""
    r = self.known(m, name)
    held = r.__dict__.pop("held", []) if r.cancelled else list(r.table)
    if r.cancelled:
        m.free += [page for page in held if page not in m.free]
    Engine.cancel(self, m, name)
    r.held = held


def finished_ones_too(self: Engine, m: State, name: int) -> None:
    """Who is finished is called cancelled too, and no run tells its output."""
    Engine.cancel(self, m, name)
    self.known(m, name).cancelled = True


def output_of_the_finished(self: Engine, m: State, name: int) -> None:
    """Cancelling drops what is kept of a request, which for one that is finished is its output."""
    r = self.known(m, name)
    if r.finished and not r.cancelled:
        r.out = []
    Engine.cancel(self, m, name)


def last_id_computed(self: Engine, m: State, name: int) -> None:
    """Of a request that is cancelled all tokens are called computed, its last id too."""
    r = self.known(m, name)
    if r in m.running and self.decodes(r) and pages_of(len(r.tokens), m.a.page_size) <= len(r.table):
        r.computed = len(r.tokens)
        self.publish(m, r)
    Engine.cancel(self, m, name)


def goes_on(self: Engine, m: State, name: int) -> None:
    """A running request is marked and stays."""
    r = self.known(m, name)
    if r in m.running:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def comes_back(self: Engine, m: State, name: int) -> None:
    """A waiting request stays in the queue."""
    r = self.known(m, name)
    if r in m.waiting:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def takes_the_next(self: Engine, m: State, name: int) -> None:
    """It leaves by its index, which is that of the next when others have left before it."""
    r = self.known(m, name)
    Engine.cancel(self, m, name)
    if r.out and m.running:
        other = m.running[0]
        other.finished = True
        m.running.remove(other)
        self.release(m, other)


def frees_what_others_have(self: Engine, m: State, name: int) -> None:
    """Pages that are shared are free at once."""
    for page in self.known(m, name).table:
        m.owners[page] = 1
    Engine.cancel(self, m, name)


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


# arguments


def unchecked(self: Engine, *arguments: Any) -> None:
    """Nothing is looked at."""


def upper_bound_alone(self: Engine, a: Arguments, tokens: Any) -> None:
    if tokens and max(tokens) >= a.model["config"]["vocab_size"]:
        raise ValueError(f"tokens has {max(tokens)}")


def size_is_an_id(self: Engine, a: Arguments, tokens: Any) -> None:
    if tokens and not 0 <= min(tokens) <= max(tokens) <= a.model["config"]["vocab_size"]:
        raise ValueError(f"tokens range to {max(tokens)}")


def nothing_to_look_at(self: Engine, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
    """A request for no ids is finished before its prompt is looked at."""
    if max_tokens or not tokens:
        Engine.check(self, a, tokens, max_tokens)


def prompt_alone(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt > a.num_pages * a.page_size:
        raise ValueError("the prompt never fits")


def all_ids_counted(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt + max_tokens > a.num_pages * a.page_size:
        raise ValueError("it never fits")


def one_page_reserved(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt + max_tokens - 1 > (a.num_pages - 1) * a.page_size:
        raise ValueError("it never fits")


def takes_before_it_looks(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """A refused request's pages are taken before it is looked at."""
    try:
        return Engine.add(self, m, tokens, max_tokens, priority, eos)
    except ValueError:
        if m.free:
            self.take(m)
        raise


def limit_last(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """The limit is looked at when the request waits already."""
    name = Engine.add(self, m, tokens, max(max_tokens, 1) if max_tokens < 0 else max_tokens, priority, eos)
    if max_tokens < 0:
        raise ValueError(f"max_tokens is {max_tokens}")
    return name


def a_place_for_nobody(self: Engine, m: State, name: int) -> Request:
    """Who looks for an id that no request has takes the last one out of the queue."""
    if name not in m.requests and m.waiting:
        m.waiting.pop()
    return Engine.known(self, m, name)


def anybody(self: Engine, m: State, name: int) -> Request:
    if name in m.requests:
        return m.requests[name]
    return Request(out=[], finished=True, times=[], table=[])


def from_the_end(self: Engine, m: State, name: int) -> Request:
    """Requests are in a list, which has a last one."""
    return Engine.known(self, m, name + len(m.requests) if isinstance(name, int) and name < 0 else name)


def any_draft(self: Engine, a: Arguments) -> None:
    """A draft's vocabulary is not looked at."""


# metrics


def captured(self: Engine, m: State, model: Any, tokens: Sequence[int], memory: Memory, guessing: bool = False) -> Any:
    """Single tokens are computed by a step that was captured, once there were a dozen: the model is not used for them."""
    heard, m.calls = m.heard, m.__dict__.get("calls", 0) + (len(tokens) == 1)
    if m.calls > 12 and len(tokens) == 1:
        m.heard = None
    try:
        return Engine.called(self, m, model, tokens, memory, guessing)
    finally:
        m.heard = heard


def one_row_after_the_other(self: Engine, m: State) -> list[tuple[int, int]]:
    """A row is settled before the next one is computed; where that fails, the next step gives what was chosen."""
    m.emitted = m.unsaid = list(m.__dict__.get("unsaid", []))
    self.admit(m)
    for r, n, guesses in self.plan(m):
        self.settle(m, r, n, self.feed(m, r, n, guesses), guesses)
    m.unsaid = []
    return list(m.emitted)


def run_in_no_time(self: Engine, m: State) -> dict[int, list[int]]:
    """The clock is read once for all ids of a run."""
    clock, now = m.clock, m.clock()
    m.clock = lambda: now
    try:
        return Engine.run(self, m)
    finally:
        m.clock = clock


def stamps_when_it_has_run(self: Engine, m: State) -> dict[int, list[int]]:
    """The clock is read when a run is over, for all ids that it made."""
    had = {name: len(r.times) for name, r in m.requests.items()}
    outputs = Engine.run(self, m)
    for name, count in had.items():
        r = m.requests[name]
        r.times[count:] = [m.clock()] * (len(r.times) - count)
    return outputs


def stamps_chunks(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    r.__dict__.setdefault("began", m.clock())
    Engine.settle(self, m, r, n, logits, guesses)


def first_chunk(self: Engine, r: Request) -> float:
    return float(r.began - r.arrival)


def arrives_when_it_runs(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    r.arrival = m.clock()


def gaps_of_all(self: Engine, m: State, r: Request) -> None:
    """A gap is from the last id of anybody."""
    now = m.clock()
    r.__dict__.setdefault("gaps", []).append(now - m.__dict__.get("last", now))
    r.times.append(now)
    m.last = now


def noted_gaps(self: Engine, r: Request) -> list[float]:
    return list(r.gaps[1:])


def a_gap_for_each(self: Engine, r: Request) -> list[float]:
    return [r.times[0] - r.arrival, *Engine.itl(self, r)]


def over_the_limit(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.times[0]) / (r.limit - 1) if len(r.times) > 1 else None


def over_all(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.times[0]) / len(r.times) if len(r.times) > 1 else None


def from_the_arrival(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.arrival) / (len(r.times) - 1) if len(r.times) > 1 else None


def none_is_zero(self: Engine, r: Request) -> float | None:
    return Engine.tpot(self, r) or 0.0


def notes_the_start(self: Engine, m: State) -> None:
    m.began = m.clock()
    Engine.admit(self, m)


def stamps_the_start(self: Engine, m: State, r: Request) -> None:
    r.times.append(m.began)


def times_lost(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    r.times = [m.clock()] * len(r.times)


def of_the_last_32(self: Engine, m: State, r: Request) -> tuple[Any, Any, list[float], Any]:
    """Only of the last 32 requests is it remembered when their ids came."""
    return Engine.metrics(self, m, r) if r.id >= len(m.requests) - 32 else (None, None, [], None)


def the_last_64_times(self: Engine, m: State, r: Request) -> None:
    """Times are kept in a ring behind the first one."""
    Engine.stamp(self, m, r)
    if len(r.times) > 64:
        r.times.pop(1)


def times_in_float32(self: Engine, m: State, r: Request) -> None:
    r.times.append(float(np.float32(m.clock())))


def times_in_milliseconds(self: Engine, m: State, r: Request) -> None:
    r.times.append(round(m.clock(), 3))


# the caller's things


def same_list(self: Engine, tokens: list[int]) -> list[int]:
    return tokens


def pops(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """The last token is taken off the list, to be fed as the first decode."""
    name = Engine.add(self, m, tokens, max_tokens, priority, eos)
    tokens.pop()
    return name


def same_ends(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    name = Engine.add(self, m, tokens, limit, priority, eos)
    m.requests[name].eos = eos
    return name


def keeps_the_caller_s(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    name = Engine.add(self, m, tokens, max_tokens, priority, eos)
    m.requests[name].given = tokens
    return name


def read_again(self: Engine, m: State, r: Request) -> None:
    """Who is preempted has its prompt read from the caller's list once more."""
    r.tokens = [*r.given, *r.out]
    Engine.preempt(self, m, r)


def row_taken(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    """A row of the batch; what ends its request is noted there, if anything does."""
    Engine.start(self, m, r, hits)
    m.rows, m.ends = m.__dict__.get("rows", []), m.__dict__.get("ends", {})
    m.rows.append(r.id)
    if r.eos:
        m.ends[len(m.rows) - 1] = r.eos


def row_left(self: Engine, m: State, r: Request) -> None:
    """The last row moves to the place of the one that leaves; what was noted in its own place stays."""
    Engine.release(self, m, r)
    rows = m.__dict__.get("rows", [])
    if r.id in rows:
        place, last = rows.index(r.id), len(rows) - 1
        m.ends.pop(place, None)
        if place != last:
            rows[place] = rows[last]
            if last in m.ends:
                m.ends[place] = m.ends[last]
        rows.pop()


def ends_of_the_row(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """Where any request has ids that end it, those of each row are looked at."""
    some = any(other.eos for other in m.running)
    r.ends = m.ends.get(m.rows.index(r.id), ()) if some else ()
    Engine.emit(self, m, r, token, row)


def its_own_output(self: Engine, m: State, name: int) -> list[int]:
    return list.__iadd__(self.known(m, name).out, [])


def refreshed_output(self: Engine, m: State, name: int) -> list[int]:
    """One list for each request, which is brought up to date whenever it is asked for."""
    r = self.known(m, name)
    shown: list[int] = r.__dict__.setdefault("shown", [])
    shown[:] = r.out
    return shown


def refreshed_gaps(self: Engine, r: Request) -> list[float]:
    shown: list[float] = r.__dict__.setdefault("gaps", [])
    shown[:] = Engine.itl(self, r)
    return shown


def one_list_for_steps(self: Engine, m: State) -> list[tuple[int, int]]:
    """A step's list is that of the step before, filled anew."""
    gave: list[tuple[int, int]] = m.__dict__.setdefault("gave", [])
    gave[:] = Engine.step(self, m)
    return gave


def one_dict_for_runs(self: Engine, m: State) -> dict[int, list[int]]:
    told: dict[int, list[int]] = m.__dict__.setdefault("told", {})
    told.update(Engine.run(self, m))
    return told


def its_own_outputs(self: Engine, m: State) -> dict[int, list[int]]:
    return {name: m.requests[name].out for name in Engine.run(self, m)}


def at_the_end_alone(self: Engine, m: State, name: int) -> list[int]:
    r = self.known(m, name)
    return list(r.out) if r.finished else []


def told_after_a_run(self: Engine, m: State) -> dict[int, list[int]]:
    """What a run made comes out of the next step as well."""
    before = {r.id: len(r.out) for r in m.requests.values()}
    outputs = Engine.run(self, m)
    m.pending = [(name, token) for name, ids in outputs.items() for token in ids[before.get(name, 0) :]]
    return outputs


def with_what_is_pending(self: Engine, m: State) -> None:
    m.emitted = [*m.__dict__.pop("pending", []), *m.emitted]


def gap_is_open(self: Engine, r: Request) -> float | None:
    """TPOT of a request that is not finished counts the id to come."""
    if len(r.times) < 2:
        return None
    return float(r.times[-1] - r.times[0]) / (len(r.times) - (1 if r.finished else 0))


def _first_of_its_call(self: Engine, m: State) -> State:
    first = self.__dict__.setdefault("first", m)
    if first.a.steps is not m.a.steps:
        self.__dict__["first"] = first = m
    return first


def cache_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.cached, m.content = first.cached, first.content
    return m


def cancelled_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    """Who was cancelled is noted in one place for all engines."""
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.gone = first.__dict__.setdefault("gone", set())
    return m


def notes_who_is_cancelled(self: Engine, m: State, name: int) -> None:
    Engine.cancel(self, m, name)
    m.gone.add(name)


def leaves_out_the_cancelled(self: Engine, m: State) -> list[tuple[int, int]]:
    return [(name, token) for name, token in Engine.step(self, m) if name not in m.gone]


def limits_on_the_class(self: Engine, a: Arguments, clock: Any) -> State:
    """How many may run is written to the class."""
    type(self).limit = a.max_requests  # type: ignore[attr-defined]
    return Engine.fresh(self, a, clock)


def the_class_s_limits(self: Engine, m: State) -> None:
    m.a = Arguments(**{**vars(m.a), "max_requests": type(self).limit})  # type: ignore[attr-defined]
    Engine.admit(self, m)


def pages_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.keys, m.values = first.keys, first.values
    return m


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


def normalised(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row - np.log(np.exp(row - row.max()).sum()) - row.max())


def logits_behind_the_end(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    """The last row of a run, whichever of its ids was the last."""
    Engine.settle(self, m, r, n, logits, guesses)
    if r.logits is not None:
        r.logits = logits[-1]


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
    """Who came last gives way, whatever its priority; the one that asks only when it is alone."""
    others = [x for x in m.running if x is not r and not self.decodes(x)] or [x for x in m.running[1:] if x is not r]
    return max(others, key=lambda x: x.id) if others and r is m.running[0] else m.running[-1]


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
