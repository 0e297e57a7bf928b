"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/engine_pages.py`."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from inferspec.spec.contract import Change
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import Request, State, pages_of

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


def hits_beside_the_budget(self: Engine, m: State, r: Request, left: int) -> int:
    """What a prompt begins with in the cache is taken off what its first chunk takes of the budget."""
    if self.decodes(r) or r.computed != m.hit.pop(r.id, None):
        return int(Engine.share_of(self, m, r, max(left, 0)))
    return int(min(len(r.tokens) - r.computed, max(left, 0) + r.computed))


def notes_hits(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    m.hit = {**vars(m).get("hit", {}), r.id: r.computed}


def computed_again_at_once(self: Engine, m: State, r: Request, left: int) -> int:
    """What a preempted request had is computed again in one step."""
    return len(r.tokens) - r.computed if r.out else Engine.share_of(self, m, r, max(left, 0))


def computed_again_to_the_end_of_a_page(self: Engine, m: State, r: Request, left: int) -> int:
    n = Engine.share_of(self, m, r, max(left, 0))
    if not n or not r.out or self.decodes(r):
        return n
    end = pages_of(r.computed + n, m.a.page_size) * m.a.page_size
    return min(end, len(r.tokens)) - int(r.computed)


def outputs_again_at_once(self: Engine, m: State, r: Request, left: int) -> int:
    """What a preempted request had generated is computed again with the last chunk of its prompt."""
    n = Engine.share_of(self, m, r, max(left, 0))
    return len(r.tokens) - r.computed if r.out and r.computed + n >= len(r.prompt) else n


Rows = list[tuple[Request, int, list[int]]]
"""What a step computes: of each request how many tokens, and what it guesses."""


def planned(counted: Callable[[Engine, Request, int], int]) -> Callable[[Engine, State], Rows]:
    """A plan whose budget counts so many of a request's tokens."""

    def plan(self: Engine, m: State) -> Rows:
        left, rows = m.a.max_prefill_tokens, []
        for r in list(m.running):
            if r not in m.running:
                continue
            n = self.share_of(m, r, left)
            left -= counted(self, r, n)
            guessed = self.most_guesses(m, r, n)
            if n and self.make_room(m, r, r.computed + n + guessed):
                rows.append((r, n, self.guesses(m, r, guessed)))
        return [row for row in rows if row[0] in m.running]

    return plan


computed_again_beside = planned(lambda self, r, n: 0 if r.out else n)
"""What a preempted request computes again leaves prompts all of the budget."""


@planned
def output_again_beside(self: Engine, r: Request, n: int) -> int:
    """Of what a preempted request computes again its prompt is counted alone, and a token a step."""
    return 0 if self.decodes(r) else min(n, max(1, len(r.prompt) - r.computed)) if r.out else n


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


def last_chunk_visible_before(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """The last of several chunks of a prompt is in the cache when it is handed to the model."""
    if r.computed and not r.out and r.computed + n == len(r.tokens):
        r.computed += n
        self.publish(m, r)
        r.computed -= n
    return Engine.feed(self, m, r, n, guesses)


def first_chunk_visible_before(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """The first chunk of a prompt is in the cache when it is handed to the model."""
    if not r.computed and not r.out:
        r.computed += n
        self.publish(m, r)
        r.computed -= n
    return Engine.feed(self, m, r, n, guesses)


def filled_page_visible_before(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """A page that an id fills is in the cache when the id is handed to the model."""
    if self.decodes(r):
        r.computed += n
        self.publish(m, r)
        r.computed -= n
    return Engine.feed(self, m, r, n, guesses)


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


def behind_pages_in_any_order(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    """The hashes of the pages before are added up, and so are known in any order."""
    size = m.a.page_size
    *before, own = (tuple(tokens[i * size : (i + 1) * size]) for i in range(index + 1))
    return tuple(sorted(before)), own


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


def hit_again_stays_free(self: Engine, m: State, page: int) -> None:
    """A free page is taken out of the free ones when it is hit for the first time."""
    lent = vars(m).setdefault("lent", set())
    again = page in m.free and page in lent
    Engine.share(self, m, page)
    lent.add(page)
    if again:
        m.free.append(page)


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


def known_by_the_first_id(self: Engine, m: State, r: Request) -> None:
    """Pages of an output are known by its first id again and again."""
    _publish_as(self, m, r, [*r.prompt, *r.out[:1] * len(r.out)])


def known_by_the_id_before(self: Engine, m: State, r: Request) -> None:
    """Pages of an output are known by the ids that were fed when its own came."""
    _publish_as(self, m, r, [*r.prompt, *r.tokens[len(r.prompt) - 1 : -1]])


def _publish_as(self: Engine, m: State, r: Request, tokens: list[int]) -> None:
    for index in range(self.written(m, r)):
        key, page = self.key(m, tokens, index), r.table[index]
        if key not in m.cached and page not in m.content:
            m.cached[key], m.content[page] = page, key


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


def free_hits(self: Engine, m: State, r: Request) -> list[int]:
    """The pages of who is served yet are its own: what it had is known when it has given them back."""
    return list(itertools.takewhile(lambda page: not m.owners[page], Engine.hits(self, m, r)))


def last_hit_missed(self: Engine, m: State, r: Request) -> list[int]:
    return Engine.hits(self, m, r)[:-1]


def four_hits(self: Engine, m: State, r: Request) -> list[int]:
    return Engine.hits(self, m, r)[:4]


def leaves_nothing(self: Engine, m: State, r: Request) -> None:
    """Who ends has given its pages back when what they hold is told."""


def known_by_step(left_out: Callable[[State, Request, range], Iterable[int]]) -> Change:
    """Of the pages that a step fills those are never known which `left_out` names."""

    def settle(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
        r.began = r.computed
        Engine.settle(self, m, r, n, logits, guesses)

    def publish(self: Engine, m: State, r: Request) -> None:
        new = range(r.began // m.a.page_size, self.written(m, r))
        r.unknown = getattr(r, "unknown", set()) | set(left_out(m, r, new))
        for index in set(range(self.written(m, r))) - r.unknown:
            key, page = self.key(m, r.tokens, index), r.table[index]
            if key not in m.cached and page not in m.content:
                m.cached[key], m.content[page] = page, key

    return {"settle": settle, "publish": publish}


def begun_before(m: State, r: Request, new: range) -> Iterable[int]:
    """The page of the prompt that the step before began."""
    size = m.a.page_size
    return [index for index in new if index * size < r.began and (index + 1) * size <= len(r.prompt)]


def all_but_the_first(m: State, r: Request, new: range) -> Iterable[int]:
    """Of the pages that end in the output all but the first."""
    return [index for index in new if (index + 1) * m.a.page_size > len(r.prompt)][1:]


def notes_a_hit(self: Engine, m: State, page: int) -> None:
    Engine.share(self, m, page)
    m.hit = {*getattr(m, "hit", ()), page}


def forgotten_once_hit(self: Engine, m: State, page: int) -> None:
    """A page that was hit is known no more when the last who has it gives it back."""
    Engine.leave(self, m, page)
    if page in getattr(m, "hit", ()) and m.owners[page] == 0:
        self.forget(m, page)


def what_it_held_kept(self: Engine, m: State, page: int) -> None:
    """What a page held is no longer hit when another takes it, and nothing that is computed in it later is known."""
    m.cached.pop(m.content.get(page), None)


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
