"""Mistakes in serving engines, and other honest ways to serve."""

from __future__ import annotations

import functools
import heapq
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.spec import engine as spec
from inferspec.spec.contract import Arguments, Change, Fault, Requirement, Variant
from inferspec.spec.engine import Engine
from inferspec.spec.engine_model import FAMILIES, Request, State, forward, pages_of
from inferspec.spec.faults.linear import TIRED
from inferspec.spec.transformer import Memory

VLLM = "https://github.com/vllm-project/vllm"
METAL = "https://github.com/vllm-project/vllm-metal/commit"
MLX_LM = "https://github.com/ml-explore/mlx-lm/commit"
NANO = "https://github.com/GeeeekExplorer/nano-vllm"
TINY = "https://github.com/skyzh/tiny-llm/commit"

Rows = list[tuple[Request, int, np.ndarray, list[int]]]


def _computed(self: Engine, m: State) -> Rows:
    return [(r, n, self.feed(m, r, n, guesses), guesses) for r, n, guesses in self.plan(m)]


# rows of a batch


def _position_of_the_first(self: Engine, m: State, r: Request) -> int:
    """One offset for all rows."""
    return int(m.running[0].computed)


def _last_logits_for_all(self: Engine, m: State) -> list[tuple[int, int]]:
    m.emitted = []
    self.admit(m)
    rows = _computed(self, m)
    for r, n, logits, guesses in rows:
        last = rows[-1][2]
        self.settle(m, r, n, last if len(last) == len(logits) else logits, guesses)
    return list(m.emitted)


def _rows(most: int) -> Change:
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


def _the_last_128(self: Engine, tokens: list[int]) -> list[int]:
    """A long prompt is cut at its front."""
    return list(tokens[-128:])


def _at_most_32(self: Engine, r: Request) -> int:
    return int(min(r.limit, 32))


def _table_of_64(self: Engine, m: State, r: Request) -> list[int]:
    """A row of the block table has 64 entries; those of later pages are over the first ones."""
    return [r.table[i % 64] for i in range(len(r.table))]


def _pages_in_a_byte(self: Engine, m: State, table: list[int], start: int, length: int) -> np.ndarray:
    return Engine.slots(self, m, [page % 256 for page in table], start, length)


def _one_token_short(self: Engine, m: State, r: Request) -> int:
    return max(r.computed - 1, 0) if self.decodes(r) else int(r.computed)


def _one_token_more(self: Engine, m: State, r: Request) -> int:
    """The slot of the new token is read before it is written."""
    return int(r.computed + 1) if self.decodes(r) else int(r.computed)


def _longest_context(self: Engine, m: State, r: Request) -> int:
    """Every row reads as much as the longest."""
    if not self.decodes(r):
        return int(r.computed)
    return min(max(x.computed for x in m.running), len(r.table) * m.a.page_size)


def _moves_into_the_gap(self: Engine, m: State, r: Request) -> None:
    """The last running request takes the place of one that ends, and the place's table with it."""
    gone = list(r.table)
    Engine.end(self, m, r)
    if m.running:
        m.running[-1].place = gone


def _table_of_the_place(self: Engine, m: State, r: Request) -> list[int]:
    place = r.__dict__.pop("place", r.table)
    return list(place if len(place) >= len(r.table) else r.table)


def _leaves_its_state(self: Engine, m: State, r: Request) -> None:
    """Who ends leaves what was computed to the next owner of its place."""
    m.left = self.read(m, r)
    Engine.end(self, m, r)


def _takes_the_state(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    r.found = m.__dict__.pop("left", {})


def _behind_the_state(self: Engine, m: State, r: Request) -> Memory:
    own, found = Engine.read(self, m, r), r.__dict__.get("found", {})
    if not own:
        return {layer: tuple(pair) for layer, pair in found.items()}
    return {
        layer: tuple(np.concatenate([x, y], axis=3) for x, y in zip(found[layer], pair, strict=True)) if found else pair
        for layer, pair in own.items()
    }


_FIRST_IDS: dict[Any, int] = {}


def _first_id_of_the_config(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """What came of a prompt is remembered by the model's config, whatever its weights."""
    if not r.out:
        config = json.dumps(m.a.model["config"], sort_keys=True)
        token = _FIRST_IDS.setdefault((config, tuple(r.prompt)), token)
    Engine.emit(self, m, r, token, row)


# chunks


def _chunk_back_by_one(self: Engine, m: State, r: Request, n: int) -> list[int]:
    """Later chunks begin with the last token of the chunk before."""
    back = 1 if r.computed and not self.decodes(r) else 0
    return list(r.tokens[r.computed - back : r.computed - back + n])


def _chunks_at_zero(self: Engine, m: State, r: Request) -> int:
    """Later chunks of a prompt begin at position 0 again."""
    return int(r.computed) if self.decodes(r) else 0


def _chunks_alone(self: Engine, m: State, r: Request) -> int:
    """A chunk sees none of those before."""
    return int(r.computed) if self.decodes(r) else 0


def _an_id_after_every_chunk(
    self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]
) -> None:
    if not r.out and r.computed + n < len(r.tokens):
        r.computed += n
        self.emit(m, r, self.choose(logits[-1]), logits[-1])
        return
    Engine.settle(self, m, r, n, logits, guesses)


def _first_row(self: Engine, n: int) -> int:
    """Ids are chosen by the first row of a chunk."""
    return 0


def _budget_for_each(self: Engine, m: State, r: Request, left: int) -> int:
    """Every prompt may have as many tokens as a step."""
    return Engine.share_of(self, m, r, m.a.max_prefill_tokens)


def _prompts_at_once(self: Engine, m: State, r: Request, left: int) -> int:
    return len(r.tokens) - r.computed


def _all_that_fit(self: Engine, m: State) -> None:
    """As many run as there are pages for."""
    most, m.a.max_requests = m.a.max_requests, 10**6
    Engine.admit(self, m)
    m.a.max_requests = most


# pages


def _sizes_of_two(self: Engine, m: State, table: list[int], start: int, length: int) -> np.ndarray:
    """Page and place by a shift and a mask, as if every size were a power of two."""
    size, bits = m.a.page_size, (m.a.page_size - 1).bit_length()
    mask, slots = (1 << bits) - 1, m.a.num_pages * m.a.page_size
    places = [table[min(p >> bits, len(table) - 1)] * size + (p & mask) for p in range(start, start + length)]
    return np.array(places, np.int64) % slots


def _next_page_late(self: Engine, m: State, r: Request) -> int:
    """The first token of a page is written over the last of the page before."""
    full = r.computed and r.computed % m.a.page_size == 0 and self.decodes(r)
    return int(r.computed) - bool(full)


def _pages_in_order(self: Engine, m: State, r: Request) -> list[int]:
    """Pages are read by their number, not in the order of the table."""
    return sorted(r.table)


# preemption


def _prompt_lost(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    if r.out:
        r.tokens = r.tokens[-1:]


def _output_lost(self: Engine, m: State, r: Request) -> None:
    """Goes on from the prompt alone, behind the output that it has."""
    Engine.preempt(self, m, r)
    r.tokens = list(r.prompt)


def _still_computed(self: Engine, m: State, r: Request) -> None:
    """What was computed before counts although its pages are gone."""
    computed = r.computed
    Engine.preempt(self, m, r)
    r.stale = computed


def _from_what_was_computed(self: Engine, m: State, r: Request, hits: list[int]) -> int:
    known = Engine.cached_tokens(self, m, r, hits)
    return max(known, min(r.__dict__.pop("stale", 0), len(r.tokens) - 1))


def _table_kept(self: Engine, m: State, r: Request) -> None:
    """A preempted request goes on in the pages that it gave back."""
    table, computed = list(r.table), r.computed
    Engine.preempt(self, m, r)
    r.kept = table, computed


def _starts_in_its_old_pages(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    table, computed = r.__dict__.pop("kept", ([], 0))
    if computed > r.computed:
        for page in table[len(hits) :]:
            self.share(m, page)
        r.table, r.computed = [*hits, *table[len(hits) :]], computed


def _eos_lost(self: Engine, m: State, r: Request) -> None:
    """What goes back to the queue is a new request of the prompt and the output, without the ids that end it."""
    Engine.preempt(self, m, r)
    r.eos = ()


def _told_again(self: Engine, m: State, r: Request) -> None:
    """After a preemption the output comes out once more from its beginning."""
    Engine.preempt(self, m, r)
    m.emitted += [(r.id, token) for token in r.out]


# prefixes


def _position_after_the_hit(self: Engine, m: State, r: Request) -> int:
    """RoPE starts at 0 after a hit."""
    return int(r.computed - r.hit)


def _notes_the_hit(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    r.hit = r.computed


def _visible_at_once(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    """All pages of a prompt are taken when it begins, and are in the cache from then on."""
    Engine.start(self, m, r, hits)
    while len(r.table) < pages_of(len(r.tokens), m.a.page_size):
        r.table.append(self.take(m))
    computed, r.computed = r.computed, len(r.tokens)
    self.publish(m, r)
    r.computed = computed


def _page_alone(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    return tuple(tokens[index * m.a.page_size : (index + 1) * m.a.page_size])


def _page_and_place(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    return index, _page_alone(self, m, tokens, index)


def _page_and_the_one_before(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    """The key of the page before is of its own tokens, and not chained."""
    return index, tuple(tokens[max(index - 1, 0) * m.a.page_size : (index + 1) * m.a.page_size])


def _ends_of_pages(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    size = m.a.page_size
    return tuple((tokens[i * size], tokens[(i + 1) * size - 1]) for i in range(index + 1))


def _ids_modulo(most: int) -> Change:
    """A key is made of ids as narrow integers."""
    return {"key": lambda self, m, tokens, index: tuple(x % most for x in Engine.key(self, m, tokens, index))}


def _by_page(read: Callable[[list[int]], Any]) -> Change:
    """A page is known by what is read in it and in each of those before."""

    def key(self: Engine, m: State, tokens: list[int], index: int) -> Any:
        size = m.a.page_size
        return tuple(read(tokens[i * size : (i + 1) * size]) for i in range(index + 1))

    return {"key": key}


def _as_text(page: list[int]) -> str:
    return "".join(str(token) for token in page)


def _to_base_31(page: list[int]) -> int:
    return functools.reduce(lambda value, token: value * 31 + token, page, 0)


def _last_four(page: list[int]) -> tuple[int, ...]:
    return tuple(page[-4:])


def _any_order(self: Engine, m: State, tokens: list[int], index: int) -> Any:
    return tuple(sorted(tokens[: (index + 1) * m.a.page_size]))


def _nothing_left(self: Engine, m: State, r: Request) -> int:
    return int(len(r.tokens) // m.a.page_size)


def _nothing_left_once_preempted(self: Engine, m: State, r: Request) -> int:
    """Only of new prompts is a token left over."""
    return int((len(r.tokens) - (not r.out)) // m.a.page_size)


def _last_token_twice(self: Engine, m: State, r: Request, left: int) -> int:
    """Of a prompt that is hit whole the last token is fed once more, behind itself."""
    return max(Engine.share_of(self, m, r, left), min(1, left))


def _the_last_again(self: Engine, m: State, r: Request, n: int) -> list[int]:
    return list(r.tokens[r.computed : r.computed + n]) or list(r.tokens[-n:])


def _counts_the_last(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    if r.computed == len(r.tokens):
        r.computed -= n
    Engine.settle(self, m, r, n, logits, guesses)


def _remembers_its_answer(self: Engine, m: State, r: Request) -> None:
    m.__dict__.setdefault("answers", {}).setdefault(tuple(r.prompt), len(r.out))
    Engine.end(self, m, r)


def _as_long_as_before(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Sequence[int]) -> int:
    """A prompt that was answered before gets that answer, however many ids are asked for."""
    name = Engine.add(self, m, tokens, limit, priority, eos)
    m.requests[name].limit = min(limit, m.__dict__.get("answers", {}).get(tuple(tokens), limit) or limit)
    return name


def _still_cached(self: Engine, m: State, page: int) -> None:
    """A page that is taken for other tokens stays in the cache."""
    m.content.pop(page, None)


def _cached_by_a_copy(self: Engine, m: State, page: int) -> None:
    """What is known of a page stays when it is taken, as long as a running request has computed the same."""
    key = m.content.get(page)
    if key and any(r.computed >= len(key) and tuple(r.tokens[: len(key)]) == key for r in m.running):
        del m.content[page]
    else:
        Engine.forget(self, m, page)


def _each_page_once(self: Engine, m: State, r: Request) -> None:
    """A page is cached when it is full, and not again when an equal one was taken meanwhile."""
    for index in range(r.__dict__.get("known", 0), self.written(m, r)):
        key, page = self.key(m, r.tokens, index), r.table[index]
        if key not in m.cached and page not in m.content:
            m.cached[key], m.content[page] = page, key
        r.known = index + 1


def _behind_a_gap(self: Engine, m: State, r: Request) -> list[int]:
    """A page that is not cached is passed over, and those behind it are hit."""
    places = range(self.most_hits(m, r) if m.a.prefix_caching else 0)
    found = [m.cached.get(self.key(m, r.tokens, index)) for index in places]
    return [page for page in found if page is not None]


def _hits_anyway(self: Engine, m: State, r: Request) -> list[int]:
    """Nobody asks whether there is to be a prefix cache."""
    asked, m.a.prefix_caching = m.a.prefix_caching, True
    found = Engine.hits(self, m, r)
    m.a.prefix_caching = asked
    return found


def _cached_when_cancelled(self: Engine, m: State, name: int) -> None:
    """The pages of a cancelled request are no longer known to be in the cache, and stay there."""
    for page in self.known(m, name).table:
        if m.owners[page] == 1:
            m.content.pop(page, None)
    Engine.cancel(self, m, name)


def _hit_stays_free(self: Engine, m: State, page: int) -> None:
    m.owners[page] += 1


def _over_the_old_key(self: Engine, m: State, r: Request) -> None:
    """A page's old key is never dropped when the page gets another."""
    for index in range(self.written(m, r)):
        key = self.key(m, r.tokens, index)
        m.cached.setdefault(key, r.table[index])


def _last_not_computed(self: Engine, m: State, r: Request) -> int:
    """The last id counts as computed, which it is only in the next step."""
    return int(min(len(r.tokens) // m.a.page_size, len(r.table)))


def _at_the_end_too(self: Engine, m: State, r: Request) -> None:
    self.publish(m, r)
    Engine.end(self, m, r)


def _no_hits(self: Engine, m: State, r: Request) -> list[int]:
    return []


# guesses


def _all_right(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    return len(guesses)


def _right_in_any_place(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """All guesses that agree count, those behind a wrong one too."""
    return sum(guess == own for guess, own in zip(guesses, chosen, strict=False))


def _all_or_none(self: Engine, chosen: list[int], guesses: list[int]) -> int:
    """Where any guess is wrong, none counts."""
    right = Engine.agreeing(self, chosen, guesses)
    return right if right == len(guesses) else 0


def _draft_not_rewound(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """What the draft was fed stays in its memory, wrong guesses too; what follows is fed behind them."""
    memory, known = r.draft
    if not known:
        return Engine.rewound(self, m, r)
    return {**memory, "offset": memory[0][0].shape[3]}, list(r.tokens[: min(len(known), len(r.tokens) - 1)])


def _prompt_unfed_beside(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """In a step in which others guess, the draft is not fed the prompts that the model is."""
    if not r.draft[1] and any(other.out for other in m.running if other is not r):
        return {"offset": len(r.tokens) - 1}, list(r.tokens[:-1])
    return Engine.rewound(self, m, r)


def _hits_unfed(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """The draft is fed what the model computes, and not what was hit."""
    if not r.draft[1] and r.hit:
        return {"offset": r.hit}, list(r.tokens[: r.hit])
    return Engine.rewound(self, m, r)


def _not_rewound(self: Engine, r: Request, right: int) -> int:
    return len(r.tokens) + int(r.__dict__.get("guessed", right))


def _notes_its_guesses(self: Engine, m: State, r: Request, count: int) -> list[int]:
    found = Engine.guesses(self, m, r, count)
    r.guessed = len(found)
    return found


def _burst(drop: Any) -> Change:
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


def _own_id_lost(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """Where a guess is wrong after right ones, the model's own id there is skipped and the next row's is taken."""
    ids = chosen[:right] + chosen[right + 1 : right + 2] if 0 < right < len(chosen) - 1 else chosen[: right + 1]
    for token in ids:
        if not r.finished:
            self.emit(m, r, token, rows[0])


def _row_before(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """After guesses that are all right the id is that of the row before."""
    ids = [*chosen[:right], chosen[right - 1] if right and right == len(chosen) - 1 else chosen[right]]
    for token in ids:
        if not r.finished:
            self.emit(m, r, token, rows[0])


def _limit_at_the_end(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """max_tokens is looked at after all ids of a step."""
    limit, r.limit = r.limit, 10**6
    for token in chosen[: right + 1]:
        if not r.finished:
            self.emit(m, r, token, rows[0])
    r.limit = limit
    if not r.finished and len(r.out) >= limit:
        self.end(m, r)


def _as_many_as_ever(self: Engine, m: State, r: Request, n: int) -> int:
    if m.a.draft is None or not n or r.computed + n < len(r.tokens):
        return 0
    return int(min(m.a.num_draft_tokens, m.a.num_pages * m.a.page_size - len(r.tokens)))


def _end_at_the_end(self: Engine, m: State, r: Request, chosen: list[int], right: int, rows: np.ndarray) -> None:
    """Only the last id of a step is looked at for an end."""
    eos, r.eos = r.eos, ()
    for token in chosen[:right]:
        if not r.finished:
            self.emit(m, r, token, rows[0])
    r.eos = eos
    if not r.finished:
        self.emit(m, r, chosen[right], rows[0])


def _one_guess_unfed(self: Engine, m: State, r: Request) -> tuple[Memory, list[int]]:
    """The last guess is never fed to the draft: where all were right, it goes on without."""
    memory, known = Engine.rewound(self, m, r)
    if r.__dict__.get("whole") and len(known) < len(r.tokens) - 1:
        known = list(r.tokens[: len(known) + 1])
        memory["offset"] = len(known)
    return memory, known


def _notes_whole(self: Engine, m: State, r: Request, count: int) -> list[int]:
    found = Engine.guesses(self, m, r, count)
    r.whole = bool(found)
    return found


def _heads_of_the_model(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft's keys and values lie in pages as wide as the model's."""
    widths = [FAMILIES[x["family"]]().heads(x["config"])[1] * x["config"]["head_dim"] for x in (m.a.model, m.a.draft)]
    if count and len(set(widths)) > 1:
        raise ValueError(f"{widths[1]} numbers do not go into {widths[0]}")
    return Engine.guesses(self, m, r, count)


def _guesses_among_the_tokens(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """Guesses are put behind the request's tokens, and taken off when all are made."""
    length = len(r.tokens)
    for _ in range(count):
        row = self.called(m, m.a.draft, r.tokens, {}, guessing=True)[-1]
        r.tokens.append(self.choose(row))
    found = list(r.tokens[length:])
    del r.tokens[length:]
    return found


def _draft_out_of_positions(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft is asked for more than it has positions for."""
    if count and len(r.tokens) + count - 1 > m.a.draft["config"]["max_position_embeddings"]:
        raise ValueError("the draft has no such position")
    return Engine.guesses(self, m, r, count)


def _never_guesses(self: Engine, m: State, r: Request, n: int) -> int:
    return 0


# limits and ends


def _one_too_many(self: Engine, r: Request) -> int:
    return int(r.limit + 1)


def _never_at_once(self: Engine, r: Request) -> bool:
    return False


def _ends_with_the_prompt(self: Engine, r: Request, token: int) -> bool:
    return token in r.eos or any(x in r.eos for x in r.prompt)


def _first_of_them(self: Engine, r: Request, token: int) -> bool:
    return token in r.eos[:1]


def _first_four(self: Engine, r: Request, token: int) -> bool:
    return token in r.eos[:4]


def _zero_is_none(self: Engine, r: Request, token: int) -> bool:
    return bool(token) and token in r.eos


def _ends_of_the_last(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    """A request that gives none has the ids of the one before it."""
    m.ends = eos or m.__dict__.get("ends", ())
    return Engine.add(self, m, tokens, limit, priority, m.ends)


def _ends_of_the_prompt(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    """A prompt that was answered before is ended by what ended it then."""
    ends = m.__dict__.get("ends", {}).get(tuple(tokens), eos)
    return Engine.add(self, m, tokens, limit, priority, ends)


def _keeps_its_ends(self: Engine, m: State, r: Request) -> None:
    m.__dict__.setdefault("ends", {}).setdefault(tuple(r.prompt), r.eos)
    Engine.end(self, m, r)


def _comes_out(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """The id that ends a request comes out first."""
    eos, r.eos = r.eos, ()
    Engine.emit(self, m, r, token, row)
    r.eos = eos
    if token in eos and not r.finished:
        self.end(m, r)


def _not_at_first(self: Engine, r: Request, token: int) -> bool:
    """The id that comes of the prompt is not looked at."""
    return bool(r.out) and token in r.eos


def _fails_at_first(self: Engine, r: Request, token: int) -> bool:
    if token in r.eos and not r.out:
        raise KeyError("the slot has no request yet")
    return token in r.eos


def _lost_at_first(self: Engine, m: State, r: Request) -> None:
    """Who ends without an id stays in its place for ever."""
    if r.out:
        Engine.end(self, m, r)


# order


def _by_arrival(self: Engine, r: Request) -> Any:
    return r.id


def _smaller_first(self: Engine, r: Request) -> Any:
    return r.priority, r.id


def _latest_first(self: Engine, r: Request) -> Any:
    return -r.priority, -r.id


def _by_text(self: Engine, r: Request) -> Any:
    """Names of requests are texts, and 10 comes before 2."""
    return -r.priority, str(r.id)


def _heap_as_it_lies(self: Engine, m: State) -> None:
    """Who waits lies in a heap, and whoever there is room for is taken from its front: only the first of a heap is in order."""
    heap: list[Any] = []
    for r in sorted(m.waiting, key=lambda r: r.id):
        heapq.heappush(heap, (self.order(r), r.id))
    m.waiting = [m.requests[name] for _, name in heap]
    Engine.admit(self, m)
    m.waiting.sort(key=self.order)


def _counts_arrivals(self: Engine, m: State, r: Request) -> None:
    m.came = m.__dict__.get("came", 0) + 1
    r.came = r.__dict__.get("came", m.came)
    Engine.queue(self, m, r)


def _by_count(self: Engine, r: Request) -> Any:
    return -r.priority, r.came


def _counts_anew(self: Engine, m: State, r: Request) -> None:
    """Arrivals are counted from 0 again when nobody runs, although some wait."""
    Engine.end(self, m, r)
    m.came = m.came if m.running else 0


def _priority_lost(self: Engine, m: State, r: Request) -> None:
    r.priority = 0
    Engine.preempt(self, m, r)


def _begins(self: Engine, m: State) -> None:
    m.began = True
    Engine.admit(self, m)


def _sorted_once(self: Engine, m: State, r: Request) -> None:
    """The queue is in order when the first step begins; who comes later goes to its end."""
    m.waiting.append(r)
    if not m.__dict__.get("began"):
        m.waiting.sort(key=self.order)


def _displaces(self: Engine, m: State) -> None:
    """A waiting request of higher priority takes a running one's place at once, and what that had computed is lost."""
    if m.waiting and len(m.running) >= m.a.max_requests and m.waiting[0].priority > m.running[-1].priority:
        _prompt_lost(self, m, m.running[-1])
    Engine.admit(self, m)


# what steps give


def _name_of_the_first(self: Engine, m: State, r: Request) -> int:
    return int(m.running[0].id)


def _names_of_64(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    name = Engine.add(self, m, tokens, limit, priority, eos)
    if name >= 64:
        r = m.requests.pop(name)
        r.id = name % 64
        m.requests[r.id] = r
    return name % 64


def _last_not_told(self: Engine, m: State, r: Request) -> None:
    """The id that finishes a request is not among those of the step."""
    if len(r.out) >= r.limit and m.emitted and m.emitted[-1][0] == r.id:
        m.emitted.pop()
    Engine.end(self, m, r)


def _sixteen_told(self: Engine, m: State) -> None:
    """A step has room for sixteen ids."""
    m.emitted = m.emitted[:16]


def _told_together(self: Engine, m: State) -> None:
    """Ids are held back until their request is finished."""
    held = m.__dict__.setdefault("held", [])
    held += m.emitted
    m.emitted = [pair for pair in held if m.requests[pair[0]].finished]
    m.held = [pair for pair in held if not m.requests[pair[0]].finished]


def _those_of_this_run(self: Engine, m: State) -> dict[int, list[int]]:
    mine = [r for r in m.requests.values() if not r.finished]
    Engine.run(self, m)
    return {r.id: list(r.out) for r in mine}


def _nothing_to_run(self: Engine, m: State) -> dict[int, list[int]]:
    if not m.requests:
        raise IndexError("there is no request")
    return Engine.run(self, m)


def _nothing_to_do(self: Engine, m: State) -> list[tuple[int, int]]:
    if not m.requests:
        raise IndexError("there is no request")
    return Engine.step(self, m)


def _cancelled_ones_too(self: Engine, m: State) -> dict[int, list[int]]:
    Engine.run(self, m)
    return {r.id: list(r.out) for r in m.requests.values()}


def _prompts_do_not_count(self: Engine, m: State) -> bool:
    """The loop ends when nobody waits and nobody generates, although a prompt is being computed."""
    return bool(m.waiting or any(r.out for r in m.running))


def _dropped(self: Engine, m: State) -> None:
    """Who comes when there is no room for it is taken from the queue and not put back."""
    waiting = list(m.waiting)
    Engine.admit(self, m)
    if m.waiting and len(m.waiting) < len(waiting) and len(m.running) < m.a.max_requests:
        m.waiting.pop(0)


def _lost_when_preempted(self: Engine, m: State, r: Request) -> None:
    m.running.remove(r)
    self.release(m, r)


# pages that come back, or not


def _partial_page_kept(self: Engine, m: State, r: Request) -> None:
    r.table = r.table[: max(r.computed // m.a.page_size, 0)]
    Engine.release(self, m, r)


def _shared_kept(self: Engine, m: State, page: int) -> None:
    if m.owners[page] == 1:
        Engine.leave(self, m, page)


def _free_at_once(self: Engine, m: State, page: int) -> None:
    """The first of its owners to leave a page frees it."""
    m.owners[page] -= 1
    m.free.append(page)


def _guessed_pages_lost(self: Engine, m: State, r: Request) -> None:
    r.table = r.table[: pages_of(r.computed, m.a.page_size)]


def _all_free(self: Engine, m: State) -> int:
    return int(m.a.num_pages)


def _one_page_each(self: Engine, m: State) -> int:
    return int(m.a.num_pages - len(m.running))


# cancelling


def _pages_kept(self: Engine, m: State, name: int) -> None:
    table = self.known(m, name).table
    self.known(m, name).table = []
    Engine.cancel(self, m, name)
    self.known(m, name).table = table


def _prompt_pages_kept(self: Engine, m: State, name: int) -> None:
    """Only a request that generates gives its pages back."""
    (Engine.cancel if self.known(m, name).out else _pages_kept)(self, m, name)


def _waiting_alone(self: Engine, m: State, name: int) -> None:
    """Who waits since it was preempted is neither among those that never ran nor among those that run."""
    r = self.known(m, name)
    if r in m.waiting and r.out:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def _remembers_its_pages(self: Engine, m: State, r: Request) -> None:
    table = list(r.table)
    Engine.preempt(self, m, r)
    r.before = table


def _frees_what_it_had(self: Engine, m: State, name: int) -> None:
    """A preempted request's pages, which are free since then, are freed once more."""
    r = self.known(m, name)
    m.free += r.__dict__.pop("before", []) if r in m.waiting else []
    Engine.cancel(self, m, name)


def _frees_again(self: Engine, m: State, name: int) -> None:
    """Cancelling again frees again, whoever has the pages now."""
    r = self.known(m, name)
    held = r.__dict__.pop("held", []) if r.cancelled else list(r.table)
    if r.cancelled:
        m.free += [page for page in held if page not in m.free]
    Engine.cancel(self, m, name)
    r.held = held


def _goes_on(self: Engine, m: State, name: int) -> None:
    """A running request is marked and stays."""
    r = self.known(m, name)
    if r in m.running:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def _comes_back(self: Engine, m: State, name: int) -> None:
    """A waiting request stays in the queue."""
    r = self.known(m, name)
    if r in m.waiting:
        r.cancelled = True
    else:
        Engine.cancel(self, m, name)


def _takes_the_next(self: Engine, m: State, name: int) -> None:
    """It leaves by its index, which is that of the next when others have left before it."""
    r = self.known(m, name)
    Engine.cancel(self, m, name)
    if r.out and m.running:
        other = m.running[0]
        other.finished = True
        m.running.remove(other)
        self.release(m, other)


def _frees_what_others_have(self: Engine, m: State, name: int) -> None:
    """Pages that are shared are free at once."""
    for page in self.known(m, name).table:
        m.owners[page] = 1
    Engine.cancel(self, m, name)


# failing


def _one_by_one(self: Engine, m: State) -> list[tuple[int, int]]:
    """Each row is settled before the next is computed: what it gave is lost when that fails."""
    m.emitted = []
    self.admit(m)
    for r, n, guesses in self.plan(m):
        self.settle(m, r, n, self.feed(m, r, n, guesses), guesses)
    return list(m.emitted)


def _drops_the_batch(self: Engine, m: State) -> list[tuple[int, int]]:
    try:
        return Engine.step(self, m)
    except RuntimeError:
        for r in list(m.running):
            self.end(m, r)
        raise


def _says_nothing(self: Engine, m: State) -> list[tuple[int, int]]:
    try:
        return Engine.step(self, m)
    except RuntimeError:
        return []


def _no_room(self: Engine, m: State) -> list[tuple[int, int]]:
    """An error that means elsewhere that there is no room is taken for that, whoever raises it."""
    try:
        return Engine.step(self, m)
    except (IndexError, KeyError, ValueError):
        return []


def _stamped_when_computed(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """An id is stamped when its row is computed, and the stamp stays when another row fails."""
    logits = Engine.feed(self, m, r, n, guesses)
    if r.computed + n == len(r.tokens):
        r.times.append(m.clock())
    return logits


def _stamped_before(self: Engine, m: State, r: Request) -> None:
    """The stamp is there."""


def _run_says_nothing(self: Engine, m: State) -> dict[int, list[int]]:
    """A run ends where the model fails, and gives what there is."""
    try:
        return Engine.run(self, m)
    except RuntimeError:
        return {r.id: list(r.out) for r in m.requests.values() if not r.cancelled}


def _counts_before(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
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


def _unchecked(self: Engine, *arguments: Any) -> None:
    """Nothing is looked at."""


def _upper_bound_alone(self: Engine, a: Arguments, tokens: Any) -> None:
    if tokens and max(tokens) >= a.model["config"]["vocab_size"]:
        raise ValueError(f"tokens has {max(tokens)}")


def _size_is_an_id(self: Engine, a: Arguments, tokens: Any) -> None:
    if tokens and not 0 <= min(tokens) <= max(tokens) <= a.model["config"]["vocab_size"]:
        raise ValueError(f"tokens range to {max(tokens)}")


def _nothing_to_look_at(self: Engine, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
    """A request for no ids is finished before its prompt is looked at."""
    if max_tokens or not tokens:
        Engine.check(self, a, tokens, max_tokens)


def _prompt_alone(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt > a.num_pages * a.page_size:
        raise ValueError("the prompt never fits")


def _all_ids_counted(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt + max_tokens > a.num_pages * a.page_size:
        raise ValueError("it never fits")


def _one_page_reserved(self: Engine, a: Arguments, prompt: int, max_tokens: int) -> None:
    if prompt + max_tokens - 1 > (a.num_pages - 1) * a.page_size:
        raise ValueError("it never fits")


def _takes_before_it_looks(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """A refused request's pages are taken before it is looked at."""
    try:
        return Engine.add(self, m, tokens, max_tokens, priority, eos)
    except ValueError:
        if m.free:
            self.take(m)
        raise


def _limit_last(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """The limit is looked at when the request waits already."""
    name = Engine.add(self, m, tokens, max(max_tokens, 1) if max_tokens < 0 else max_tokens, priority, eos)
    if max_tokens < 0:
        raise ValueError(f"max_tokens is {max_tokens}")
    return name


def _a_place_for_nobody(self: Engine, m: State, name: int) -> Request:
    """Who looks for an id that no request has takes the last one out of the queue."""
    if name not in m.requests and m.waiting:
        m.waiting.pop()
    return Engine.known(self, m, name)


def _anybody(self: Engine, m: State, name: int) -> Request:
    if name in m.requests:
        return m.requests[name]
    return Request(out=[], finished=True, times=[], table=[])


def _from_the_end(self: Engine, m: State, name: int) -> Request:
    """Requests are in a list, which has a last one."""
    return Engine.known(self, m, name + len(m.requests) if isinstance(name, int) and name < 0 else name)


def _any_draft(self: Engine, a: Arguments) -> None:
    """A draft's vocabulary is not looked at."""


# metrics


def _stamps_chunks(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    r.__dict__.setdefault("began", m.clock())
    Engine.settle(self, m, r, n, logits, guesses)


def _first_chunk(self: Engine, r: Request) -> float:
    return float(r.began - r.arrival)


def _arrives_when_it_runs(self: Engine, m: State, r: Request, hits: list[int]) -> None:
    Engine.start(self, m, r, hits)
    r.arrival = m.clock()


def _gaps_of_all(self: Engine, m: State, r: Request) -> None:
    """A gap is from the last id of anybody."""
    now = m.clock()
    r.__dict__.setdefault("gaps", []).append(now - m.__dict__.get("last", now))
    r.times.append(now)
    m.last = now


def _noted_gaps(self: Engine, r: Request) -> list[float]:
    return list(r.gaps[1:])


def _a_gap_for_each(self: Engine, r: Request) -> list[float]:
    return [r.times[0] - r.arrival, *Engine.itl(self, r)]


def _over_the_limit(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.times[0]) / (r.limit - 1) if len(r.times) > 1 else None


def _over_all(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.times[0]) / len(r.times) if len(r.times) > 1 else None


def _from_the_arrival(self: Engine, r: Request) -> float | None:
    return float(r.times[-1] - r.arrival) / (len(r.times) - 1) if len(r.times) > 1 else None


def _none_is_zero(self: Engine, r: Request) -> float | None:
    return Engine.tpot(self, r) or 0.0


def _notes_the_start(self: Engine, m: State) -> None:
    m.began = m.clock()
    Engine.admit(self, m)


def _stamps_the_start(self: Engine, m: State, r: Request) -> None:
    r.times.append(m.began)


def _times_lost(self: Engine, m: State, r: Request) -> None:
    Engine.preempt(self, m, r)
    r.times = [m.clock()] * len(r.times)


# the caller's things


def _same_list(self: Engine, tokens: list[int]) -> list[int]:
    return tokens


def _pops(self: Engine, m: State, tokens: list[int], max_tokens: int, priority: int, eos: Any) -> int:
    """The last token is taken off the list, to be fed as the first decode."""
    name = Engine.add(self, m, tokens, max_tokens, priority, eos)
    tokens.pop()
    return name


def _same_ends(self: Engine, m: State, tokens: list[int], limit: int, priority: int, eos: Any) -> int:
    name = Engine.add(self, m, tokens, limit, priority, eos)
    m.requests[name].eos = eos
    return name


def _its_own_output(self: Engine, m: State, name: int) -> list[int]:
    return list.__iadd__(self.known(m, name).out, [])


def _its_own_outputs(self: Engine, m: State) -> dict[int, list[int]]:
    return {name: m.requests[name].out for name in Engine.run(self, m)}


def _at_the_end_alone(self: Engine, m: State, name: int) -> list[int]:
    r = self.known(m, name)
    return list(r.out) if r.finished else []


def _told_after_a_run(self: Engine, m: State) -> dict[int, list[int]]:
    """What a run made comes out of the next step as well."""
    before = {r.id: len(r.out) for r in m.requests.values()}
    outputs = Engine.run(self, m)
    m.pending = [(name, token) for name, ids in outputs.items() for token in ids[before.get(name, 0) :]]
    return outputs


def _with_what_is_pending(self: Engine, m: State) -> None:
    m.emitted = [*m.__dict__.pop("pending", []), *m.emitted]


def _gap_is_open(self: Engine, r: Request) -> float | None:
    """TPOT of a request that is not finished counts the id to come."""
    if len(r.times) < 2:
        return None
    return float(r.times[-1] - r.times[0]) / (len(r.times) - (1 if r.finished else 0))


def _first_of_its_call(self: Engine, m: State) -> State:
    first = self.__dict__.setdefault("first", m)
    if first.a is not m.a:
        self.__dict__["first"] = first = m
    return first


def _cache_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.cached, m.content = first.cached, first.content
    return m


def _pages_of_all(self: Engine, a: Arguments, clock: Any) -> State:
    m = Engine.fresh(self, a, clock)
    first = _first_of_its_call(self, m)
    m.keys, m.values = first.keys, first.values
    return m


# logits


def _logits_of_the_prompt(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row if r.logits is None else r.logits)


def _logits_of_the_last_row(self: Engine, m: State) -> list[tuple[int, int]]:
    m.emitted = []
    self.admit(m)
    rows = _computed(self, m)
    for r, n, logits, guesses in rows:
        self.settle(m, r, n, logits, guesses)
    for r, *_ in rows:
        r.logits = rows[-1][2][-1] if r.logits is not None else None
    return list(m.emitted)


def _normalised(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row - np.log(np.exp(row - row.max()).sum()) - row.max())


def _logits_behind_the_end(self: Engine, m: State, r: Request, n: int, logits: np.ndarray, guesses: list[int]) -> None:
    """The last row of a run, whichever of its ids was the last."""
    Engine.settle(self, m, r, n, logits, guesses)
    if r.logits is not None:
        r.logits = logits[-1]


def _logits_of_the_end(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    """The last row, also where its id ends the output and does not come out."""
    r.logits = row
    Engine.emit(self, m, r, token, row)


def _logits_held_back(self: Engine, m: State, r: Request, token: int, row: np.ndarray) -> None:
    Engine.emit(self, m, r, token, row)
    if not r.finished:
        r.held, r.logits = r.logits, None


def _shows_its_logits(self: Engine, m: State, r: Request) -> None:
    r.logits = r.__dict__.get("held") if r.logits is None else r.logits
    Engine.end(self, m, r)


def _another_order_of_sums(
    self: Engine, m: State, model: Any, tokens: Any, memory: Memory, guessing: bool = False
) -> np.ndarray:
    """Matrices of other sizes are multiplied in another order."""
    return Engine.called(self, m, model, tokens, memory, guessing) * (1 + len(m.running) * 2.0**-23)


# other honest ways


def _one_at_a_time(self: Engine, m: State) -> None:
    if not m.running:
        Engine.admit(self, m)
        for r in m.running[:0:-1]:
            self.preempt(m, r)


def _slices(self: Engine, r: Request) -> Any:
    return -r.priority, len(r.out) // 2, r.id


def _takes_turns(self: Engine, m: State) -> None:
    """Who has made two ids makes room for one that waits and has made fewer."""
    if m.waiting and len(m.running) >= m.a.max_requests:
        last = max(m.running, key=self.order)
        if self.order(m.waiting[0]) < self.order(last):
            self.preempt(m, last)
    Engine.admit(self, m)


def _prompts_first(self: Engine, m: State) -> list[tuple[Request, int, list[int]]]:
    """While prompts are computed nobody generates."""
    rows = Engine.plan(self, m)
    return [row for row in rows if not self.decodes(row[0])] or rows


def _everything_anew(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """Nothing is read: all tokens are computed again in every step."""
    logits = self.called(m, m.a.model, [*r.tokens[: r.computed + n], *guesses], {})
    return logits[r.computed :]


def _own_memory(self: Engine, m: State, r: Request, n: int, guesses: list[int]) -> np.ndarray:
    """Each request has a memory of its own, contiguous and cut back; pages are only counted."""
    known = r.__dict__.setdefault("memory", {})
    have = min(known.get("offset", 0), r.computed)
    memory: Memory = {k: tuple(x[..., :have, :] for x in pair) for k, pair in known.items() if k != "offset"}
    memory = {**memory, "offset": have} if have else {}
    logits = self.called(m, m.a.model, [*r.tokens[have : r.computed + n], *guesses], memory)
    r.memory = memory
    return logits[r.computed - have :]


def _latest_freed_first(self: Engine, m: State) -> int:
    m.free.insert(0, m.free.pop())
    return Engine.take(self, m)


def _all_it_will_need(self: Engine, m: State) -> None:
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


def _latest_victim(self: Engine, m: State, r: Request) -> Request:
    """Who came last gives way, whatever its priority; the one that asks only when it is alone."""
    others = [x for x in m.running if x is not r and not self.decodes(x)] or [x for x in m.running[1:] if x is not r]
    return max(others, key=lambda x: x.id) if others and r is m.running[0] else m.running[-1]


def _prompts_alone_cached(self: Engine, m: State, r: Request) -> int:
    return int(min(r.computed, len(r.prompt)) // m.a.page_size)


def _pages_of_guesses_kept(self: Engine, m: State, r: Request) -> None:
    """Pages for wrong guesses stay for the next ones."""


def _latest_copy(self: Engine, m: State, r: Request) -> None:
    """Of two pages with the same tokens the later is known."""
    for index in range(self.written(m, r)):
        key, page = self.key(m, r.tokens, index), r.table[index]
        if m.content.get(page) != key:
            m.content.pop(m.cached.get(key, -1), None)
            m.cached[key], m.content[page] = page, key


def _dense_draft(self: Engine, m: State, r: Request, count: int) -> list[int]:
    """The draft has no memory."""
    found: list[int] = []
    for _ in range(count):
        found.append(self.choose(forward(m.a.draft, [*r.tokens, *found], {})[-1]))
    return found


def _fits_the_draft(self: Engine, a: Arguments, tokens: Sequence[int], max_tokens: int) -> None:
    """What goes past the draft's positions is refused."""
    Engine.check(self, a, tokens, max_tokens)
    if a.draft and len(tokens) + max_tokens - 1 > a.draft["config"]["max_position_embeddings"]:
        raise ValueError("the draft has no such positions")


def _as_far_as_the_draft(self: Engine, m: State, r: Request, n: int) -> int:
    """Nothing is guessed past the draft's positions."""
    most = Engine.most_guesses(self, m, r, n)
    return max(0, min(most, m.a.draft["config"]["max_position_embeddings"] - len(r.tokens))) if most else 0


def _without_a_draft_that_fails(self: Engine, m: State, r: Request, count: int) -> list[int]:
    try:
        return Engine.guesses(self, m, r, count)
    except (RuntimeError, IndexError, KeyError, ValueError):
        return []


def _fault(name: str, text: str, kills: Requirement, change: Change, source: str) -> Fault:
    return Fault(f"engine-{name}", text, kills, change, source)


_JOB = "PROPERTIES CB4"

FAULTS: tuple[Fault, ...] = (
    _fault(
        "one-offset",
        "all rows are turned from the first row's position",
        spec.ENG_01,
        {"position": _position_of_the_first},
        f"{MLX_LM}/1e71de53",
    ),
    _fault("five-rows", "rows of a step past the fifth get its logits", spec.ENG_01, _rows(5), TIRED),
    _fault("sixteen-rows", "rows of a step past the sixteenth get its logits", spec.ENG_01, _rows(16), TIRED),
    _fault(
        "prompts-cut", "only the last 128 tokens of a prompt are computed", spec.ENG_01, {"kept": _the_last_128}, TIRED
    ),
    _fault(
        "last-logits-for-all",
        "all rows of a step get the last row's logits",
        spec.ENG_01,
        {"step": _last_logits_for_all},
        f"{METAL}/d20dd02",
    ),
    _fault(
        "first-id-of-the-config",
        "what came of a prompt comes again of another model with the same config",
        spec.ENG_01,
        {"emit": _first_id_of_the_config},
        "PROPERTIES X7",
    ),
    _fault(
        "context-one-short",
        "a generating row does not see the token before its own",
        spec.ENG_01,
        {"context": _one_token_short},
        "PROPERTIES PA1",
    ),
    _fault(
        "context-one-more",
        "a generating row sees a slot that is not written yet",
        spec.ENG_01,
        {"context": _one_token_more},
        f"{VLLM}/pull/47305",
    ),
    _fault(
        "longest-context",
        "every row reads as many slots as the longest row has tokens",
        spec.ENG_01,
        {"context": _longest_context},
        f"{VLLM}/pull/936",
    ),
    _fault(
        "table-of-the-place",
        "who takes the place of a finished request reads the place's old pages",
        spec.ENG_02,
        {"end": _moves_into_the_gap, "table": _table_of_the_place},
        _JOB,
    ),
    _fault(
        "state-of-the-last-owner",
        "a request begins with what the last owner of its place had computed",
        spec.ENG_02,
        {"end": _leaves_its_state, "start": _takes_the_state, "read": _behind_the_state},
        f"{METAL}/b213b8b",
    ),
    _fault(
        "chunk-back-by-one",
        "later chunks of a prompt begin a token early",
        spec.ENG_03,
        {"fed": _chunk_back_by_one},
        f"{MLX_LM}/cd367819",
    ),
    _fault(
        "chunks-at-zero",
        "later chunks of a prompt are at position 0 again",
        spec.ENG_03,
        {"position": _chunks_at_zero},
        f"{METAL}/dc602da",
    ),
    _fault(
        "chunks-alone",
        "a chunk of a prompt does not see the chunks before",
        spec.ENG_03,
        {"context": _chunks_alone},
        f"{MLX_LM}/5d10d9f2",
    ),
    _fault(
        "id-after-every-chunk",
        "every chunk of a prompt gives an id",
        spec.ENG_03,
        {"settle": _an_id_after_every_chunk},
        "PROPERTIES CP3",
    ),
    _fault(
        "first-row",
        "ids are chosen by a chunk's first row",
        spec.ENG_03,
        {"sampled_from": _first_row},
        "PROPERTIES CP1",
    ),
    _fault(
        "sizes-of-two",
        "the place in a page is found as if its size were a power of two",
        spec.ENG_04,
        {"slots": _sizes_of_two},
        "https://github.com/flashinfer-ai/flashinfer/issues/4347",
    ),
    _fault(
        "table-of-64-pages",
        "the table of a request has 64 pages, and begins anew behind them",
        spec.ENG_04,
        {"table": _table_of_64},
        "the maximum number of blocks of a sequence",
    ),
    _fault("pages-in-a-byte", "page ids have 8 bits", spec.ENG_04, {"slots": _pages_in_a_byte}, "PROPERTIES X8"),
    _fault(
        "next-page-late",
        "the first token of a page is written over the last one of the page before",
        spec.ENG_04,
        {"start_of": _next_page_late},
        f"{VLLM}/pull/7380",
    ),
    _fault(
        "pages-in-order",
        "pages are read in the order of their numbers",
        spec.ENG_08,
        {"table": _pages_in_order},
        "PROPERTIES PA1",
    ),
    _fault(
        "prompt-lost",
        "a preempted request goes on from its last id alone",
        spec.ENG_05,
        {"preempt": _prompt_lost},
        f"{NANO}/commit/82f5ca2",
    ),
    _fault(
        "output-lost",
        "a preempted request goes on from its prompt alone",
        spec.ENG_05,
        {"preempt": _output_lost},
        "PROPERTIES SC1",
    ),
    _fault(
        "still-computed",
        "what a preempted request had computed counts, though its pages are gone",
        spec.ENG_05,
        {"preempt": _still_computed, "cached_tokens": _from_what_was_computed},
        f"{NANO}/pull/211",
    ),
    _fault(
        "old-pages",
        "a preempted request goes on in the pages that it gave back",
        spec.ENG_05,
        {"preempt": _table_kept, "start": _starts_in_its_old_pages},
        "https://github.com/neuralmagic/vllm/pull/92",
    ),
    _fault(
        "output-at-the-end",
        "an output is empty until its request is finished",
        spec.ENG_17,
        {"output": _at_the_end_alone},
        "PROPERTIES CB2",
    ),
    _fault(
        "told-after-a-run",
        "the next step gives again what a run has returned",
        spec.ENG_17,
        {"run": _told_after_a_run, "after": _with_what_is_pending},
        "PROPERTIES CB2",
    ),
    _fault(
        "gap-is-open",
        "TPOT of a request that is not finished is over an id too many",
        spec.ENG_32,
        {"tpot": _gap_is_open},
        "PROPERTIES ME1",
    ),
    _fault(
        "its-own-output",
        "an output is the engine's own list",
        spec.ENG_34,
        {"output": _its_own_output},
        "PROPERTIES X6",
    ),
    _fault(
        "told-again",
        "after a preemption the output comes out once more",
        spec.ENG_17,
        {"preempt": _told_again},
        "PROPERTIES SC1, CB2",
    ),
    _fault(
        "position-after-the-hit",
        "positions begin at 0 after a hit",
        spec.ENG_06,
        {"start": _notes_the_hit, "position": _position_after_the_hit},
        f"{METAL}/9081de3",
    ),
    _fault(
        "visible-at-once",
        "pages are hit before they are computed",
        spec.ENG_06,
        {"start": _visible_at_once},
        f"{NANO}/commit/f64d821",
    ),
    _fault("page-alone", "a page is known by its own tokens", spec.ENG_06, {"key": _page_alone}, "PROPERTIES PC3"),
    _fault(
        "page-and-place",
        "a page is known by its own tokens and its place",
        spec.ENG_06,
        {"key": _page_and_place},
        "PROPERTIES PC3",
    ),
    _fault(
        "page-and-the-one-before",
        "a page is known by its own tokens, those of the page before and its place",
        spec.ENG_06,
        {"key": _page_and_the_one_before},
        "PROPERTIES PC3",
    ),
    _fault(
        "ends-of-pages",
        "a page is known by the first and the last token of it and of those before",
        spec.ENG_06,
        {"key": _ends_of_pages},
        "PROPERTIES PC3",
    ),
    _fault("ids-in-a-byte", "keys of pages hold ids in 8 bits", spec.ENG_06, _ids_modulo(2**8), "PROPERTIES PC3"),
    _fault("ids-in-16-bits", "keys of pages hold ids in 16 bits", spec.ENG_06, _ids_modulo(2**16), "PROPERTIES PC3"),
    _fault(
        "keys-of-digits",
        "a page is known by the digits of its ids, one after the other",
        spec.ENG_06,
        _by_page(_as_text),
        "PROPERTIES PC3",
    ),
    _fault(
        "keys-to-base-31",
        "a page is known by its ids as the digits of a number to base 31",
        spec.ENG_06,
        _by_page(_to_base_31),
        "a hash of texts; PROPERTIES PC3",
    ),
    _fault(
        "last-four-of-a-page",
        "a page is known by the last four tokens of it and of those before",
        spec.ENG_06,
        _by_page(_last_four),
        "PROPERTIES PC3",
    ),
    _fault(
        "any-order", "a page is known by its tokens in any order", spec.ENG_06, {"key": _any_order}, "PROPERTIES PC3"
    ),
    _fault(
        "nothing-left",
        "a prompt that is hit whole has nothing left to compute, and gives nothing",
        spec.ENG_07,
        {"most_hits": _nothing_left},
        f"{VLLM}/pull/3239",
    ),
    _fault(
        "last-token-twice",
        "of a prompt that is hit whole the last token is fed again, behind itself",
        spec.ENG_07,
        {
            "most_hits": _nothing_left,
            "share_of": _last_token_twice,
            "fed": _the_last_again,
            "settle": _counts_the_last,
        },
        f"{VLLM}/pull/11186",
    ),
    _fault(
        "nothing-left-once-preempted",
        "a preempted request that is hit whole has nothing left to compute",
        spec.ENG_07,
        {"most_hits": _nothing_left_once_preempted},
        "PROPERTIES PC2",
    ),
    _fault(
        "answer-of-before",
        "a prompt that was answered before gets that answer, however many ids are asked for",
        spec.ENG_07,
        {"add": _as_long_as_before, "end": _remembers_its_answer},
        "PROPERTIES X7",
    ),
    _fault(
        "still-cached",
        "a page that was taken for other tokens is still hit for its old ones",
        spec.ENG_08,
        {"forget": _still_cached},
        f"{VLLM}/pull/4761",
    ),
    _fault(
        "still-cached-by-a-copy",
        "a page that was taken is still hit for its old tokens while another request has computed the same",
        spec.ENG_08,
        {"forget": _cached_by_a_copy},
        "PROPERTIES PC4",
    ),
    _fault(
        "hits-behind-a-gap",
        "pages behind one that was taken are hit in its place",
        spec.ENG_08,
        {"publish": _each_page_once, "hits": _behind_a_gap},
        "PROPERTIES PC9",
    ),
    _fault(
        "still-cached-when-cancelled",
        "a page of a cancelled request is still hit when it was taken for other tokens",
        spec.ENG_08,
        {"cancel": _cached_when_cancelled},
        "PROPERTIES PC4",
    ),
    _fault(
        "hit-stays-free",
        "a free page that is hit is handed out again",
        spec.ENG_08,
        {"share": _hit_stays_free},
        "https://github.com/sgl-project/mini-sglang/pull/52",
    ),
    _fault(
        "keys-pile-up",
        "a page keeps its old keys when it gets new tokens",
        spec.ENG_08,
        {"publish": _over_the_old_key},
        f"{VLLM}/issues/49377",
    ),
    _fault(
        "last-not-computed",
        "a page counts as computed when its last id is known",
        spec.ENG_09,
        {"written": _last_not_computed, "end": _at_the_end_too},
        "PROPERTIES PC5",
    ),
    _fault(
        "all-guesses-right",
        "all guesses count as right",
        spec.ENG_10,
        {"agreeing": _all_right},
        "https://github.com/huggingface/transformers/pull/28508",
    ),
    _fault(
        "right-in-any-place",
        "guesses that agree count, those behind a wrong one too",
        spec.ENG_10,
        {"agreeing": _right_in_any_place},
        "https://github.com/huggingface/transformers/pull/28508",
    ),
    _fault(
        "not-rewound",
        "wrong guesses stay in the pages",
        spec.ENG_10,
        {"committed": _not_rewound, "guesses": _notes_its_guesses},
        f"{MLX_LM}/f56d9971",
    ),
    _fault(
        "own-id-lost",
        "an id is lost where a guess is wrong",
        spec.ENG_10,
        _burst(_own_id_lost),
        "https://github.com/openvinotoolkit/openvino.genai/issues/4190",
    ),
    _fault(
        "draft-as-wide-as-the-model",
        "a draft whose keys are not as wide as the model's fails",
        spec.ENG_10,
        {"guesses": _heads_of_the_model},
        "one cache configuration for model and draft",
    ),
    _fault(
        "row-before",
        "the id after guesses that are all right is that of the row before",
        spec.ENG_11,
        _burst(_row_before),
        "https://github.com/openvinotoolkit/openvino.genai/issues/4190",
    ),
    _fault(
        "limit-after-the-burst",
        "max_tokens is looked at after all ids of a step",
        spec.ENG_13,
        {**_burst(_limit_at_the_end), "most_guesses": _as_many_as_ever},
        "PROPERTIES SP5",
    ),
    _fault(
        "end-of-the-burst",
        "only the last id of a step is looked at for an end",
        spec.ENG_14,
        _burst(_end_at_the_end),
        "PROPERTIES SP5",
    ),
    _fault(
        "displaced",
        "who gives way to a higher priority loses its prompt",
        spec.ENG_12,
        {"admit": _displaces},
        "PROPERTIES SC1, SC3",
    ),
    _fault(
        "one-too-many", "an id more than max_tokens comes out", spec.ENG_13, {"most": _one_too_many}, "PROPERTIES CB3"
    ),
    _fault("at-most-32", "no more than 32 ids come out", spec.ENG_13, {"most": _at_most_32}, TIRED),
    _fault(
        "none-gives-one",
        "an id comes out where none is asked for",
        spec.ENG_13,
        {"at_once": _never_at_once},
        "PROPERTIES CB3",
    ),
    _fault(
        "end-comes-out", "the id that ends a request comes out", spec.ENG_14, {"emit": _comes_out}, "PROPERTIES CB3"
    ),
    _fault(
        "ends-with-the-prompt",
        "an end-of-sequence id in the prompt ends the request",
        spec.ENG_14,
        {"stops": _ends_with_the_prompt},
        "PROPERTIES CB3",
    ),
    _fault(
        "ends-of-the-last",
        "a request that no id ends is ended by those of the request before it",
        spec.ENG_14,
        {"add": _ends_of_the_last},
        _JOB,
    ),
    _fault(
        "ends-of-the-prompt",
        "a prompt that was answered before is ended by the ids that ended it then",
        spec.ENG_14,
        {"add": _ends_of_the_prompt, "end": _keeps_its_ends},
        "PROPERTIES X7",
    ),
    _fault(
        "first-of-the-ends",
        "of several ids only the first ends a request",
        spec.ENG_14,
        {"stops": _first_of_them},
        _JOB,
    ),
    _fault(
        "four-ends-alone",
        "of many ids only the first four end a request",
        spec.ENG_14,
        {"stops": _first_four},
        TIRED,
    ),
    _fault(
        "id-0-no-end",
        "the id 0 never ends a request",
        spec.ENG_14,
        {"stops": _zero_is_none},
        "an id that is tested bare",
    ),
    _fault(
        "end-lost-when-preempted",
        "what ends a request is forgotten when it is preempted",
        spec.ENG_14,
        {"preempt": _eos_lost},
        "PROPERTIES SC1, CB3",
    ),
    _fault(
        "first-id-no-end",
        "the id that comes of the prompt is never an end",
        spec.ENG_15,
        {"stops": _not_at_first},
        "PROPERTIES CB3",
    ),
    _fault(
        "fails-at-the-first",
        "a step raises when a request's first id ends it",
        spec.ENG_15,
        {"stops": _fails_at_first},
        "FACTS: the course's batch loop",
    ),
    _fault(
        "lost-at-the-first",
        "a request that ends without an id keeps its place for ever",
        spec.ENG_20,
        {"end": _lost_at_first},
        f"{TINY}/05972ff",
    ),
    _fault("by-arrival", "priorities are ignored", spec.ENG_16, {"order": _by_arrival}, "PROPERTIES SC3"),
    _fault(
        "smaller-first", "the smaller priority goes first", spec.ENG_16, {"order": _smaller_first}, "PROPERTIES SC3"
    ),
    _fault(
        "latest-first",
        "among equal priorities the latest goes first",
        spec.ENG_16,
        {"order": _latest_first},
        f"{VLLM}/issues/41951",
    ),
    _fault(
        "by-text",
        "among equal priorities requests go in the order of their names, 10 before 2",
        spec.ENG_16,
        {"order": _by_text},
        "PROPERTIES SC3",
    ),
    _fault(
        "heap-as-it-lies",
        "of several requests that begin at once only the first is the one that goes first",
        spec.ENG_16,
        {"admit": _heap_as_it_lies},
        "a heap that is read as if it were sorted",
    ),
    _fault(
        "counts-arrivals-anew",
        "who comes when a request has just ended goes before those that wait",
        spec.ENG_16,
        {"queue": _counts_arrivals, "order": _by_count, "end": _counts_anew},
        "PROPERTIES SC3",
    ),
    _fault(
        "priority-lost",
        "a preempted request loses its priority",
        spec.ENG_16,
        {"preempt": _priority_lost},
        "PROPERTIES SC1, SC3",
    ),
    _fault(
        "sorted-once",
        "requests that come after the first step wait in the order in which they came",
        spec.ENG_16,
        {"admit": _begins, "queue": _sorted_once},
        "PROPERTIES SC3",
    ),
    _fault(
        "name-of-another",
        "ids are given with the first running request's name",
        spec.ENG_17,
        {"name_of": _name_of_the_first},
        f"{MLX_LM}/d9846d37",
    ),
    _fault(
        "last-not-told", "no step gives a request's last id", spec.ENG_17, {"end": _last_not_told}, f"{TINY}/05972ff"
    ),
    _fault("sixteen-told", "no step gives more than sixteen ids", spec.ENG_17, {"after": _sixteen_told}, TIRED),
    _fault("names-of-64", "there are names for 64 requests", spec.ENG_17, {"add": _names_of_64}, "PROPERTIES X8"),
    _fault(
        "nothing-to-do",
        "a step before the first request raises",
        spec.ENG_17,
        {"step": _nothing_to_do},
        "PROPERTIES X9",
    ),
    _fault(
        "told-together",
        "ids are held back until their request is finished",
        spec.ENG_18,
        {"after": _told_together},
        "PROPERTIES ME6",
    ),
    _fault(
        "those-of-this-run",
        "run leaves out what was finished before",
        spec.ENG_19,
        {"run": _those_of_this_run},
        "PROPERTIES CB2",
    ),
    _fault(
        "nothing-to-run",
        "a run before the first request raises",
        spec.ENG_19,
        {"run": _nothing_to_run},
        "PROPERTIES X9",
    ),
    _fault(
        "cancelled-ones-too",
        "run returns cancelled requests",
        spec.ENG_19,
        {"run": _cancelled_ones_too},
        "PROPERTIES CB5",
    ),
    _fault(
        "pending-prompt",
        "the loop ends while a prompt is being computed",
        spec.ENG_20,
        {"unfinished": _prompts_do_not_count},
        f"{TINY}/00dbf5c",
    ),
    _fault(
        "dropped-when-full",
        "a request that has to wait for pages is taken from the queue for ever",
        spec.ENG_20,
        {"admit": _dropped},
        "PROPERTIES CB2, SC4",
    ),
    _fault(
        "lost-when-preempted",
        "a preempted request never comes back",
        spec.ENG_20,
        {"preempt": _lost_when_preempted},
        "PROPERTIES SC4",
    ),
    _fault(
        "partial-page-kept",
        "the page that is not full is never free again",
        spec.ENG_21,
        {"release": _partial_page_kept},
        "PROPERTIES PG4",
    ),
    _fault(
        "shared-page-kept",
        "pages that were shared are never free again",
        spec.ENG_21,
        {"leave": _shared_kept},
        "https://github.com/sgl-project/sglang/pull/10637",
    ),
    _fault(
        "free-at-once",
        "a shared page is free when the first of its requests ends",
        spec.ENG_21,
        {"leave": _free_at_once},
        "https://github.com/sgl-project/sglang/issues/35270",
    ),
    _fault(
        "guessed-pages-lost",
        "pages that only wrong guesses needed are never free again",
        spec.ENG_21,
        {"trim": _guessed_pages_lost},
        f"{METAL}/bb14a36",
    ),
    _fault(
        "cancelled-goes-on",
        "a running request that is cancelled goes on",
        spec.ENG_22,
        {"cancel": _goes_on},
        "PROPERTIES CB5",
    ),
    _fault(
        "cancelled-comes-back",
        "a waiting request that is cancelled begins all the same",
        spec.ENG_22,
        {"cancel": _comes_back},
        "PROPERTIES CB5",
    ),
    _fault(
        "cancelled-when-preempted-comes-back",
        "a preempted request that is cancelled goes on all the same",
        spec.ENG_22,
        {"cancel": _waiting_alone},
        "PROPERTIES CB5, SC1",
    ),
    _fault(
        "cancels-the-next",
        "cancelling a request ends another one",
        spec.ENG_23,
        {"cancel": _takes_the_next},
        "PROPERTIES CB4",
    ),
    _fault(
        "cancelling-frees-shared-pages",
        "a cancelled request's pages are free although others have them",
        spec.ENG_23,
        {"cancel": _frees_what_others_have},
        "PROPERTIES PC6",
    ),
    _fault(
        "cancelled-again-frees-again",
        "cancelling a request once more frees the pages that it had, whose ever they are now",
        spec.ENG_23,
        {"cancel": _frees_again},
        "an abort that comes twice",
    ),
    _fault(
        "preempted-pages-freed-again",
        "cancelling a preempted request frees the pages that it had before",
        spec.ENG_24,
        {"preempt": _remembers_its_pages, "cancel": _frees_what_it_had},
        "PROPERTIES PG5",
    ),
    _fault(
        "cancelled-keeps-pages",
        "a cancelled request's pages are never free again",
        spec.ENG_24,
        {"cancel": _pages_kept},
        "PROPERTIES PG7",
    ),
    _fault(
        "cancelled-prompt-keeps-pages",
        "pages of a request that is cancelled in its prompt are never free again",
        spec.ENG_24,
        {"cancel": _prompt_pages_kept},
        "PROPERTIES PG7",
    ),
    _fault(
        "half-a-step",
        "ids that came before the model failed are lost",
        spec.ENG_25,
        {"step": _one_by_one},
        "PROPERTIES PG7",
    ),
    _fault(
        "batch-dropped",
        "when the model fails all running requests end",
        spec.ENG_25,
        {"step": _drops_the_batch},
        f"{TINY}/00dbf5c",
    ),
    _fault(
        "says-nothing", "what the model raises is swallowed", spec.ENG_25, {"step": _says_nothing}, "PROPERTIES PG7"
    ),
    _fault(
        "run-says-nothing",
        "what the model raises in a run is swallowed",
        spec.ENG_25,
        {"run": _run_says_nothing},
        "PROPERTIES PG7",
    ),
    _fault(
        "errors-for-no-room",
        "some errors of the model are taken for a lack of room",
        spec.ENG_25,
        {"step": _no_room},
        "PROPERTIES PG7",
    ),
    _fault(
        "guesses-stay",
        "when the draft fails its guesses stay behind the request's tokens",
        spec.ENG_25,
        {"guesses": _guesses_among_the_tokens},
        "PROPERTIES SP8",
    ),
    _fault(
        "stamps-stay",
        "the times of ids of a failed step stay",
        spec.ENG_25,
        {"feed": _stamped_when_computed, "stamp": _stamped_before},
        "PROPERTIES ME2",
    ),
    _fault(
        "counts-before",
        "what the model failed to compute counts as computed",
        spec.ENG_25,
        {"feed": _counts_before},
        "PROPERTIES PC5",
    ),
    _fault("empty-prompts", "an empty prompt is accepted", spec.ENG_26, {"check_prompt": _unchecked}, "PROPERTIES X9"),
    _fault(
        "negative-limits",
        "a negative max_tokens is accepted",
        spec.ENG_27,
        {"check_limit": _unchecked},
        "PROPERTIES X9",
    ),
    _fault(
        "any-ids", "ids outside the vocabulary are accepted", spec.ENG_28, {"check_ids": _unchecked}, "PROPERTIES X9"
    ),
    _fault(
        "negative-ids", "negative ids are accepted", spec.ENG_28, {"check_ids": _upper_bound_alone}, "PROPERTIES X9"
    ),
    _fault(
        "size-is-an-id",
        "the id after the last is accepted",
        spec.ENG_28,
        {"check_ids": _size_is_an_id},
        "PROPERTIES X9",
    ),
    _fault(
        "ids-of-nothing",
        "ids outside the vocabulary are accepted where no id is asked for",
        spec.ENG_28,
        {"check": _nothing_to_look_at},
        "PROPERTIES X9",
    ),
    _fault(
        "never-fits",
        "a request that can never fit is accepted",
        spec.ENG_29,
        {"check_room": _unchecked},
        "PROPERTIES SC4",
    ),
    _fault(
        "prompt-fits",
        "of a request only the prompt has to fit",
        spec.ENG_29,
        {"check_room": _prompt_alone},
        "nano-vLLM post, part 3; PROPERTIES SC4",
    ),
    _fault(
        "takes-before-it-looks",
        "a refused request keeps a page",
        spec.ENG_30,
        {"add": _takes_before_it_looks},
        f"{VLLM}/pull/11565",
    ),
    _fault(
        "limit-last",
        "a request that is refused for its limit waits all the same",
        spec.ENG_30,
        {"add": _limit_last},
        "PROPERTIES X9",
    ),
    _fault(
        "last-id-counts",
        "a request is refused whose last id alone has no slot",
        spec.ENG_31,
        {"check_room": _all_ids_counted},
        "PROPERTIES SC6",
    ),
    _fault(
        "one-page-reserved",
        "a page is kept back",
        spec.ENG_31,
        {"check_room": _one_page_reserved},
        f"{METAL}/9b27db0",
    ),
    _fault(
        "stamps-chunks",
        "TTFT is stamped at the first chunk of the prompt",
        spec.ENG_32,
        {"settle": _stamps_chunks, "ttft": _first_chunk},
        f"{VLLM}/issues/15106",
    ),
    _fault(
        "arrives-when-it-runs",
        "a request's time begins when it leaves the queue",
        spec.ENG_32,
        {"start": _arrives_when_it_runs},
        "PROPERTIES ME1",
    ),
    _fault(
        "gaps-of-all",
        "a gap is counted from the last id of any request",
        spec.ENG_32,
        {"stamp": _gaps_of_all, "itl": _noted_gaps},
        "https://github.com/exo-explore/exo/commit/6ee673147",
    ),
    _fault(
        "over-the-limit",
        "TPOT is over max_tokens",
        spec.ENG_32,
        {"tpot": _over_the_limit},
        "https://github.com/sgl-project/sglang/issues/10746",
    ),
    _fault(
        "times-lost",
        "a preempted request's times begin anew",
        spec.ENG_32,
        {"preempt": _times_lost},
        "PROPERTIES ME3",
    ),
    _fault(
        "stamped-at-the-start",
        "ids are stamped with the time at which their step began",
        spec.ENG_45,
        {"admit": _notes_the_start, "stamp": _stamps_the_start},
        "PROPERTIES ME1",
    ),
    _fault(
        "gap-for-each",
        "the time to the first id is among the gaps",
        spec.ENG_33,
        {"itl": _a_gap_for_each},
        f"{VLLM}/issues/7242",
    ),
    _fault("over-all", "TPOT is over all ids", spec.ENG_33, {"tpot": _over_all}, "PROPERTIES ME1"),
    _fault(
        "from-the-arrival",
        "TPOT has the time to the first id in it",
        spec.ENG_33,
        {"tpot": _from_the_arrival},
        "https://github.com/lmstudio-ai/mlx-engine/commit/a385fb5",
    ),
    _fault("none-is-zero", "TPOT of one id is 0", spec.ENG_33, {"tpot": _none_is_zero}, "PROPERTIES ME1"),
    _fault(
        "same-list",
        "the caller's list is the engine's, and ids are put into it",
        spec.ENG_34,
        {"kept": _same_list},
        "PROPERTIES X6",
    ),
    _fault(
        "its-own-outputs",
        "the outputs that a run returns are the engine's own lists",
        spec.ENG_34,
        {"run": _its_own_outputs},
        "PROPERTIES X6",
    ),
    _fault("pops", "the last token is taken off the caller's list", spec.ENG_34, {"add": _pops}, "PROPERTIES X6"),
    _fault(
        "same-ends",
        "the caller's list of ids that end a request is the engine's",
        spec.ENG_49,
        {"add": _same_ends},
        "PROPERTIES X6",
    ),
    _fault(
        "cache-of-all",
        "engines share a prefix cache and not the pages",
        spec.ENG_35,
        {"fresh": _cache_of_all},
        "PROPERTIES X7",
    ),
    _fault("pages-of-all", "engines write into the same pages", spec.ENG_35, {"fresh": _pages_of_all}, "PROPERTIES X7"),
    _fault(
        "first-logits",
        "logits are those of the first id",
        spec.ENG_36,
        {"emit": _logits_of_the_prompt},
        "PROPERTIES CB4",
    ),
    _fault(
        "logits-of-another",
        "logits are those of the last row of the step",
        spec.ENG_36,
        {"step": _logits_of_the_last_row},
        f"{MLX_LM}/d9846d37",
    ),
    _fault(
        "logits-at-the-end",
        "there are no logits of a request until it is finished",
        spec.ENG_36,
        {"emit": _logits_held_back, "end": _shows_its_logits},
        TIRED,
    ),
    _fault("log-probabilities", "logits are normalised", spec.ENG_36, {"emit": _normalised}, f"{TINY}/05972ff"),
    _fault(
        "logits-behind-the-end",
        "where an id ends a run of guesses, the logits are those behind it",
        spec.ENG_36,
        {"settle": _logits_behind_the_end},
        TIRED,
    ),
    _fault(
        "logits-of-the-end",
        "where an id ends the output, the logits are those that it was chosen by",
        spec.ENG_36,
        {"emit": _logits_of_the_end},
        TIRED,
    ),
    _fault(
        "order-of-sums",
        "the last bits depend on how many requests run",
        spec.ENG_37,
        {"called": _another_order_of_sums},
        "PROPERTIES X11",
    ),
    _fault(
        "caches-anyway",
        "without prefix_caching pages are hit all the same",
        spec.ENG_47,
        {"hits": _hits_anyway},
        "PROPERTIES X13",
    ),
    _fault("all-pages-free", "all pages are always free", spec.ENG_46, {"free_pages": _all_free}, "PROPERTIES PG1"),
    _fault(
        "one-page-each",
        "a running request is said to have one page",
        spec.ENG_46,
        {"free_pages": _one_page_each},
        "PROPERTIES PG3",
    ),
    _fault(
        "draft-out-of-positions",
        "a step raises where a request goes past the draft's positions",
        spec.ENG_48,
        {"guesses": _draft_out_of_positions},
        "PROPERTIES SC4",
    ),
    _fault("no-hits", "what was computed is computed again", spec.ENG_38, {"hits": _no_hits}, "PROPERTIES PC9"),
    _fault(
        "place-for-nobody",
        "asking for an id that no request has takes a request out of the queue",
        spec.ENG_30,
        {"known": _a_place_for_nobody},
        TIRED,
    ),
    _fault(
        "last-for-minus-one",
        "the id -1 is the last request's",
        spec.ENG_39,
        {"known": _from_the_end},
        "a list that is asked for its last",
    ),
    _fault("anybody", "an id that no request has is answered", spec.ENG_39, {"known": _anybody}, "PROPERTIES X9"),
    _fault(
        "any-draft", "a draft of another vocabulary is accepted", spec.ENG_40, {"guard": _any_draft}, "PROPERTIES X9"
    ),
    _fault(
        "draft-misses-one",
        "where all guesses were right the last one is never fed to the draft",
        spec.ENG_41,
        {"rewound": _one_guess_unfed, "guesses": _notes_whole},
        "PROPERTIES SP4, SP9",
    ),
    _fault(
        "never-guesses", "the draft is never asked", spec.ENG_41, {"most_guesses": _never_guesses}, "PROPERTIES SP3"
    ),
    _fault(
        "draft-misses-hits",
        "what of a prompt is hit is not fed to the draft",
        spec.ENG_41,
        {"rewound": _hits_unfed, "start": _notes_the_hit},
        "PROPERTIES SP4, PC8",
    ),
    _fault(
        "draft-misses-prompts-beside-others",
        "a prompt that is computed while others generate is not fed to the draft",
        spec.ENG_41,
        {"rewound": _prompt_unfed_beside},
        TIRED,
    ),
    _fault(
        "all-or-none",
        "of a run with a wrong guess in it the right ones are thrown away too",
        spec.ENG_44,
        {"agreeing": _all_or_none},
        TIRED,
    ),
    _fault(
        "draft-not-rewound",
        "the draft's memory keeps wrong guesses",
        spec.ENG_44,
        {"rewound": _draft_not_rewound},
        f"{MLX_LM}/f56d9971",
    ),
    _fault(
        "budget-for-each",
        "every prompt has max_prefill_tokens of its own in a step",
        spec.ENG_42,
        {"share_of": _budget_for_each},
        "PROPERTIES SC5",
    ),
    _fault(
        "prompts-at-once",
        "prompts are computed at once",
        spec.ENG_42,
        {"share_of": _prompts_at_once},
        f"{METAL}/dc602da",
    ),
    _fault(
        "all-that-fit",
        "as many requests run as there are pages for",
        spec.ENG_43,
        {"admit": _all_that_fit},
        "PROPERTIES SC5",
    ),
)

VARIANTS: tuple[Variant, ...] = (
    Variant("engine-one-at-a-time", "one request after the other", "Engine", {"admit": _one_at_a_time}),
    Variant("engine-prompts-first", "nobody generates while a prompt is computed", "Engine", {"plan": _prompts_first}),
    Variant("engine-time-slices", "all take turns, two ids each", "Engine", {"order": _slices, "admit": _takes_turns}),
    Variant("engine-no-prefix-cache", "nothing is ever hit", "Engine", {"hits": _no_hits}, unmet=("ENG-38",)),
    Variant("engine-everything-anew", "all tokens computed in every step", "Engine", {"feed": _everything_anew}),
    Variant("engine-contiguous", "a contiguous memory for each request", "Engine", {"feed": _own_memory}),
    Variant("engine-latest-freed-first", "free pages are a stack", "Engine", {"take": _latest_freed_first}),
    Variant(
        "engine-never-preempts",
        "a request starts when there are pages for all of it",
        "Engine",
        {"admit": _all_it_will_need},
        unmet=("ENG-38",),
    ),
    Variant("engine-latest-victim", "who came last is preempted first", "Engine", {"victim": _latest_victim}),
    Variant("engine-prompts-cached", "only pages of prompts are cached", "Engine", {"written": _prompts_alone_cached}),
    Variant("engine-keeps-guessed-pages", "pages for guesses are kept", "Engine", {"trim": _pages_of_guesses_kept}),
    Variant("engine-latest-copy", "the later of two equal pages is hit", "Engine", {"publish": _latest_copy}),
    Variant(
        "engine-refuses-past-the-draft", "a draft's positions bound requests", "Engine", {"check": _fits_the_draft}
    ),
    Variant(
        "engine-guesses-within-the-draft",
        "nothing is guessed past the draft's positions",
        "Engine",
        {"most_guesses": _as_far_as_the_draft},
    ),
    Variant(
        "engine-without-a-failing-draft",
        "where the draft fails nothing is guessed",
        "Engine",
        {"guesses": _without_a_draft_that_fails},
    ),
    Variant("engine-draft-without-memory", "a draft that computes all anew", "Engine", {"guesses": _dense_draft}),
    Variant(
        "engine-draft-unused",
        "a draft that is not used",
        "Engine",
        {"most_guesses": _never_guesses},
        unmet=("ENG-41", "ENG-44"),
    ),
)
