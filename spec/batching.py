"""A key/value cache of a batch: one slot for each of `max_requests` requests, each of at most `max_len` tokens.

Shapes: B slots (max_requests), H key/value heads, L new tokens, n tokens of one request, M queries (mask_length),
S any number that is at least the longest request's; keys B×H×S×D_k, values B×H×S×D_v, mask B×1×M×S.

Requests of different lengths are aligned at the end: the n tokens of a slot are the last n of its row, what lies left
of them is padding. The mask is bool (True is visible) or additive in the dtype of the keys (-inf and the dtype's lowest
number hide), as attention takes it. Query i of a slot sees its token j where j <= i + n - M.

A call is a story: `steps` of one batch. A step is (method, arguments), and gives parts:

    add(key, value, slot, stale, begun)  a request takes a slot, with its cache: n tokens, 1×H×n×D each, n may be 0; `begun`
                                  of them (0 if not said) were appended to that cache before the others, as a prompt in
                                  two chunks is, and `stale` tokens of NaN were appended to it and rewound
    add_alike(step, slot)         a request with the prompt of one that an earlier step added takes a slot: its cache is
                                  another, filled from the same arrays
    add_again(step, slot)         the cache that an earlier step brought, and that was refused, takes another slot
    remove(slot)                  the request leaves its slot
    update_and_fetch(key, value, mask_length)  append L tokens to every request, and return keys, values and mask;
                                  rows of idle slots hold anything, NaN too; all slots may be idle, unless
                                  `"idle_updates": [False]` in the envelope says that such an update is never asked for
    offsets()                     how many tokens each slot holds, 0 for an idle one
    reread_offsets(step)          the offsets that an earlier step read, as they are now
    attend(query, step)           what a query, B×H_q×M×D, makes of what an earlier step returned: attention by its oracle
    begin(tokens, slot, like)     a request of a toy decoder takes a slot: its cache holds all of its prompt but the last
                                  token; `like` is what keys and values look like (spec/batch_decoder.py)
    decode(tokens, like)          every request takes L tokens, B×L, of which the first is the one that it favoured last:
                                  the ids that its queries favour, -1 for idle slots
    reread(step)                  what an earlier step returned, as it is now
    overwrite(step)               the caller writes NaN over the key and value that it gave to an earlier step
    another()                     go on with a fresh batch of as many slots; the one before is set aside, as another layer's is
    switch()                      go on with the batch that is set aside
    made(max_requests, max_len)   a batch of other sizes is made, and kept

What comes back is told by what the requests can see of it (`shown`): neither S nor what stands at hidden places is
judged, but that is finite, since the plain attention that it goes to multiplies it by 0, and that idle slots see
nothing. A step that raises gives the part `refused`, has changed nothing, and the story goes on.

A batch that grows as it must has no use for `max_len`, and says so: `"limited": [False]` in its envelope. A cache that is
added tells its tokens by `state`, keys and values 1×H×n×D each, and their number by `offset`, or is one that the batch makes
by `make_cache()`; it belongs to the batch from then on. Left open: what becomes of it, what the state of one without tokens
is, what shapes an empty batch takes, and updates of no tokens.

Source: the tiny-llm course, week 2 day 6; PROPERTIES BK1 to BK5, CB1, CB4; PROPERTIES, decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.attention import ScaledDotProductAttention
from inferspec.spec.batch_decoder import Like, codes, favoured
from inferspec.spec.contract import (
    STORY,
    Answer,
    Answers,
    Arguments,
    Aspect,
    Beside,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.numerics import Precision, f64, is_float, largest

COURSE = "tiny-llm course, week 2 day 6"
DECISIONS = "PROPERTIES, decisions"

Batch = SimpleNamespace
"""The model of a batch: `rows`, for every slot its (keys H×n×D_k, values H×n×D_v), or None when it is idle."""

Story = SimpleNamespace
"""What a story knows on its way: the arguments `a`, the `batch`, the slots that are `taken`, both of the batch that is set
`aside`, the `number` of the step, and by number of the step the arrays `given` and the results `seen`; `favourites`, by slot
the token that a request of the decoder takes next."""

Raw = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Keys, values and mask as they came back."""


def shown(
    keys: np.ndarray,
    values: np.ndarray,
    mask: np.ndarray,
    idle: Collection[int] = (),
    dtype: np.dtype[Any] | None = None,
) -> dict[str, Any]:
    """What can be seen of keys B×H×S×D_k, values B×H×S×D_v and mask B×1×M×S, so that two right answers are one.

    Columns on the left that no request sees are cut off, and what a slot's queries do not see is 0, and all that is in
    idle slots. The mask is what is added to the logits, 0 or -inf, in its own dtype; a bool one is told in `dtype`, that of
    the keys where none is given. `finite`: 1 where all that is hidden is finite; `seen_by_idle`: how many columns idle slots
    see. What has not these shapes stays as it is.
    """
    ranks = {keys.ndim, values.ndim, mask.ndim} == {4}
    if not ranks or mask.shape != (len(keys), 1, mask.shape[2], keys.shape[2]) or values.shape[:3] != keys.shape[:3]:
        return {"keys": keys, "values": values, "mask": mask, "finite": 1, "seen_by_idle": 0}
    bias = _bias(mask, dtype or keys.dtype)
    own = without_idle(bias, idle)
    seen_by_idle = int(np.any(bias != own, axis=2).sum())
    bias = own
    visible: np.ndarray = np.any(f64(bias) > -np.inf, axis=2)
    columns = np.flatnonzero(visible.any(axis=(0, 1)))
    first = int(columns[0]) if columns.size else visible.shape[-1]
    hidden = ~visible[..., None]
    finite = all(np.isfinite(f64(x)[np.broadcast_to(hidden, x.shape)]).all() for x in (keys, values))
    cut = {name: np.where(hidden, np.zeros((), x.dtype), x) for name, x in (("keys", keys), ("values", values))}
    return {
        **{name: x[:, :, first:] for name, x in cut.items()},
        "mask": bias[..., first:],
        "finite": int(finite),
        "seen_by_idle": seen_by_idle,
    }


def without_idle(mask: np.ndarray, idle: Collection[int]) -> np.ndarray:
    """The mask with nothing visible to idle slots: what they see is the matter of one requirement, and no other's."""
    slots = [slot for slot in idle if mask.ndim == 4 and slot < len(mask)]
    if not slots:
        return mask
    own = mask.copy()
    own[slots] = -np.inf if is_float(mask.dtype) else 0
    return own


def _bias(mask: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    if mask.dtype == bool:
        return np.where(mask, 0.0, -np.inf).astype(dtype)
    if not is_float(mask.dtype):
        return mask
    return np.where(f64(mask) <= -largest(mask.dtype.name), -np.inf, f64(mask)).astype(mask.dtype)


def attended(query: np.ndarray, keys: np.ndarray, values: np.ndarray, mask: np.ndarray) -> Answer:
    """Attention of query B×H_q×M×D over what an update returned, by the oracle of attention on exact numbers.

    Its budget is that of float32: it leaves no room for a foreign token, and any for the order of float64 sums.
    """
    core = ScaledDotProductAttention()
    a = core.bind({"query": f64(query), "key": f64(keys), "value": f64(values), "mask": mask})
    core.guard(a)
    answer = core.evaluate(a, Precision.FLOAT32)
    return Answer(answer.value, np.nan_to_num(answer.budget))


def taken(tokens: list[list[int]], favourites: Mapping[int, int], active: list[bool]) -> np.ndarray:
    """What the requests of a decoder take, B×L: the token that each favoured, and then those given; -1 in idle slots."""
    own = np.array(tokens, np.int64)
    for slot, busy in enumerate(active):
        own[slot] = [favourites[slot], *own[slot, 1:]] if busy else -1
    return own


def followed(favourites: dict[int, int], ids: np.ndarray) -> np.ndarray:
    """The ids that are favoured now, B×M; the last one of each row is what comes next."""
    favourites.update(enumerate(ids[:, -1].tolist()))
    return ids


class BatchingKVCache(Operation):
    """A list of tokens for every slot. Nothing is computed, so every budget is 0."""

    signature = Signature.parse("BatchingKVCache(max_requests, max_len, steps)")
    parts = STORY
    methods = ("add", "remove", "update_and_fetch")
    takes: ClassVar = {
        "add": ("cache", "slot"),
        "remove": ("slot",),
        "update_and_fetch": ("key", "value", "mask_length"),
    }
    optional_methods: ClassVar = {"offsets": ("offsets", (False,))}
    only_read = frozenset({"offsets"})
    asides: ClassVar = {"seen_by_idle": "BATCH-04", "finite": "BATCH-05"}
    beside: ClassVar[tuple[Beside, ...]] = (Beside("KVCache", modelled=True),)

    def guard(self, a: Arguments) -> None:
        if a.max_requests < 1 or a.max_len < 1:
            raise ValueError(f"max_requests is {a.max_requests}, max_len {a.max_len}: neither may be below 1")

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        return self.told(a)

    def part_dtype(self, part: str, a: Arguments) -> str:
        match part.partition(" ")[2]:
            case "keys" | "values" | "mask":
                return next(given["key"].dtype.name for _, given in a.steps if "key" in given)
            case "attended":
                return "float64"
        return "int64"

    def told(self, a: Arguments) -> dict[str, Answer]:
        """What every step gives, in float64."""
        story = Story(a=a, batch=self.fresh(a), taken=set(), aside=None, given={}, seen={}, favourites={})
        parts: dict[str, Answer] = {}
        for number, (method, given) in enumerate(a.steps, 1):
            story.number = number
            own = {name: self.taken(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
            try:
                seen: Mapping[str, Any] = getattr(self, method)(story, **own) or {}
            except (ValueError, IndexError):  # a fault without its guard may stumble later
                seen = {"refused": 1}
            parts |= {f"{number} {name}": _answer(value) for name, value in seen.items()}
        return parts

    # the steps of a story

    def add(self, story: Story, key: np.ndarray, value: np.ndarray, slot: int, stale: int, begun: int = 0) -> None:
        story.given[story.number] = key, value
        self.check_slot(story, slot)
        self.check_idle(story, slot)
        self.check_cache(story, key, value)
        self.check_prompt(story, key)
        self.enter(story, slot, *self.filled(story, key, value, begun), stale)
        story.taken.add(slot)

    def add_alike(self, story: Story, step: int, slot: int) -> None:
        key, value = story.given[step]
        self.add(story, key, value, slot, stale=0)

    def add_again(self, story: Story, step: int, slot: int) -> None:
        self.add_alike(story, step, slot)

    def remove(self, story: Story, slot: int) -> None:
        self.check_slot(story, slot)
        self.check_taken(story, slot)
        self.leave(story, slot)
        story.taken.discard(slot)

    def update_and_fetch(self, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> dict[str, Any]:
        self.check_update(story, key, value)
        self.check_room(story, key)
        story.given[story.number] = key, value
        self.store(story, key, value)
        story.seen[story.number] = *self.fetched(story, key, value, mask_length), self.without_request(story)
        return self.reread(story, story.number)

    def offsets(self, story: Story) -> dict[str, Any]:
        story.seen[story.number] = self.offsets_of(story)
        return {"offsets": story.seen[story.number]}

    def reread_offsets(self, story: Story, step: int) -> dict[str, Any]:
        return {"offsets": story.seen[step]}

    def attend(self, story: Story, query: np.ndarray, step: int) -> dict[str, Any]:
        return {"attended": attended(query, *self.requests_seen(story, step))}

    def begin(self, story: Story, tokens: list[int], slot: int, like: Like) -> None:
        self.add(story, *codes(np.array([tokens[:-1]], np.int64), [0], like), slot, stale=0)
        story.favourites[slot] = tokens[-1]

    def decode(self, story: Story, tokens: list[list[int]], like: Like) -> dict[str, Any]:
        own = taken(tokens, story.favourites, [row is not None for row in story.batch.rows])
        pair = codes(own, self.offsets_of(story), like)
        self.update_and_fetch(story, *pair, mask_length=own.shape[1])
        return {"favoured": followed(story.favourites, favoured(*self.requests_seen(story, story.number)))}

    def reread(self, story: Story, step: int) -> dict[str, Any]:
        return shown(*story.seen[step])

    def without_request(self, story: Story) -> list[int]:
        """The idle slots, as who uses the batch knows them."""
        return [slot for slot in range(story.a.max_requests) if slot not in story.taken]

    def requests_seen(self, story: Story, step: int) -> Raw:
        """What a step returned, as far as it is of requests."""
        keys, values, mask, idle = story.seen[step]
        return keys, values, without_idle(mask, idle)

    def overwrite(self, story: Story, step: int) -> None:
        for x in story.given[step]:
            x[...] = np.nan

    def another(self, story: Story) -> None:
        story.aside = story.batch, story.taken
        story.batch, story.taken = self.fresh(story.a), set()

    def switch(self, story: Story) -> None:
        (story.batch, story.taken), story.aside = story.aside, (story.batch, story.taken)

    def made(self, story: Story, max_requests: int, max_len: int) -> None:
        vars(story).setdefault("others", []).append(self.fresh(Arguments(max_requests=max_requests, max_len=max_len)))

    # what a batch refuses

    def check_slot(self, story: Story, slot: int) -> None:
        if not 0 <= slot < story.a.max_requests:
            raise ValueError(f"slot {slot} of {story.a.max_requests}")

    def check_idle(self, story: Story, slot: int) -> None:
        if story.batch.rows[slot] is not None:
            raise ValueError(f"slot {slot} is taken")

    def check_taken(self, story: Story, slot: int) -> None:
        if story.batch.rows[slot] is None:
            raise ValueError(f"slot {slot} is idle")

    def check_cache(self, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        if len(key) != 1:
            raise ValueError(f"a cache of {len(key)} requests")
        self.check_fit(story, key, value)
        self.check_dtype(story, key, value)

    def check_prompt(self, story: Story, key: np.ndarray) -> None:
        if key.shape[2] > story.a.max_len:
            raise ValueError(f"a cache of {key.shape[2]} tokens, and room for {story.a.max_len}")

    def check_update(self, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        self.check_pair(key, value)
        self.check_rows(story, key)
        self.check_fit(story, key, value)
        self.check_dtype(story, key, value)

    def check_pair(self, key: np.ndarray, value: np.ndarray) -> None:
        if key.ndim != 4 or value.ndim != 4 or key.shape[:3] != value.shape[:3]:
            raise ValueError(f"key is {key.shape} and value {value.shape}, not B×H×L×D with the same B×H×L")

    def check_rows(self, story: Story, key: np.ndarray) -> None:
        if len(key) != story.a.max_requests:
            raise ValueError(f"{len(key)} rows for {story.a.max_requests} slots")

    def check_fit(self, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        for row in self.requests(story):
            for x, cached in zip((key, value), row, strict=True):
                if (x.shape[1], x.shape[3]) != (cached.shape[0], cached.shape[2]):
                    raise ValueError(f"{x.shape} beside {cached.shape}")

    def check_dtype(self, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        for row in self.requests(story):
            for x, cached in zip((key, value), row, strict=True):
                if x.dtype != cached.dtype:
                    raise ValueError(f"{x.dtype.name} beside {cached.dtype.name}")

    def check_room(self, story: Story, key: np.ndarray) -> None:
        if any(row[0].shape[1] + key.shape[2] > story.a.max_len for row in self.requests(story)):
            raise ValueError(f"{key.shape[2]} more tokens, and room for {story.a.max_len}")

    # what a batch does

    def fresh(self, a: Arguments) -> Batch:
        return Batch(rows=[None] * a.max_requests)

    def taken(self, x: np.ndarray) -> np.ndarray:
        """An argument as the story uses it: the caller's own array stays out of it."""
        return np.array(x)

    def requests(self, story: Story) -> list[Any]:
        return [row for row in story.batch.rows if row is not None]

    def filled(self, story: Story, key: np.ndarray, value: np.ndarray, begun: int) -> tuple[np.ndarray, np.ndarray]:
        """What is in a cache to which so many tokens were appended first, and then the others."""
        return key, value

    def enter(self, story: Story, slot: int, key: np.ndarray, value: np.ndarray, stale: int) -> None:
        story.batch.rows[slot] = key[0].copy(), value[0].copy()

    def leave(self, story: Story, slot: int) -> None:
        story.batch.rows[slot] = None

    def store(self, story: Story, key: np.ndarray, value: np.ndarray) -> None:
        rows = story.batch.rows
        for slot, row in enumerate(rows):
            if row is not None:
                rows[slot] = tuple(self.joined(old, x[slot]) for old, x in zip(row, (key, value), strict=True))

    def joined(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.concatenate([old, new], axis=1)

    def fetched(self, story: Story, key: np.ndarray, value: np.ndarray, mask_length: int) -> Raw:
        width = self.width(story)
        keys, values = (self.padding((*x.shape[:2], width, x.shape[3]), x.dtype) for x in (key, value))
        mask = np.zeros((len(key), 1, mask_length, width), bool)
        for slot, row in enumerate(story.batch.rows):
            if row is None:
                self.idle(story, slot, keys, values, mask, key, value)
                continue
            length = row[0].shape[1]
            at = self.place(length, width)
            keys[slot, :, at], values[slot, :, at] = row
            mask[slot, 0, :, at] = self.visible(mask_length, length)
        return keys, values, mask

    def width(self, story: Story) -> int:
        """S."""
        return max((row[0].shape[1] for row in self.requests(story)), default=0)

    def padding(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        return np.zeros(shape, dtype)

    def place(self, length: int, width: int) -> slice:
        """Where the tokens of a slot lie in its row."""
        return slice(width - length, width)

    def visible(self, queries: int, length: int) -> np.ndarray:
        """Which of its tokens the queries of a slot see, M×n."""
        return np.arange(length) <= np.arange(queries)[:, None] + length - queries

    def idle(self, story: Story, slot: int, keys: Any, values: Any, mask: Any, key: Any, value: Any) -> None:
        """What stands in the row of an idle slot: zeros, and nothing is visible."""

    def offsets_of(self, story: Story) -> list[int]:
        return [0 if row is None else row[0].shape[1] for row in story.batch.rows]


def _answer(value: Any) -> Answer:
    return value if isinstance(value, Answer) else Answer(f64(value), np.zeros(np.shape(value)))


def _batch(
    number: int, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = COURSE
) -> Requirement:
    return Requirement(f"BATCH-{number:02}", text, "BatchingKVCache", level, aspect, source)


BATCH_01 = _batch(
    1,
    "an update returns the tokens of every request, those of its cache and all that came since, in order at the end of its "
    "row, bit for bit",
)
BATCH_02 = _batch(
    2, "requests of different lengths are aligned at the end: no query sees padding", source="PROPERTIES BK1"
)
BATCH_03 = _batch(
    3,
    "the mask is causal bottom-right within each request's own length: query i sees the tokens j <= i + n - M",
    source=DECISIONS,
)
BATCH_04 = _batch(
    4, "an idle slot sees nothing, before its first request and after each", source="PROPERTIES BK2; tiny-llm 4d4a292"
)
BATCH_05 = _batch(
    5,
    "what is hidden is finite, whatever idle slots are given and former requests left: NaN and inf do not get into padding",
    source=f"{DECISIONS}; PROPERTIES BK5",
)
BATCH_06 = _batch(
    6, "a slot that is used again shows no trace of the request before", source="vllm-metal b213b8b; PROPERTIES BK3"
)
BATCH_07 = _batch(
    7,
    "attention over a batch is that of each request alone, for any mixture of lengths and any history of the slots",
    source="PROPERTIES BK1, CB1, KV5",
)
BATCH_08 = _batch(
    8,
    "requests may come and go at any time: those that stay keep their tokens, and those of the same prompt have each their own",
    source="PROPERTIES CB4",
)
BATCH_09 = _batch(9, "a request whose cache is empty begins with its first update", source="PROPERTIES BK4")
BATCH_10 = _batch(
    10,
    "prompts and steps may be of any size, past 32, 256 and 512 too, in any order",
    source="PROPERTIES BK1",
)
BATCH_11 = _batch(11, "keys and values may have different head dims", source="PROPERTIES PA7")
BATCH_12 = _batch(
    12, "keys and values come back in the dtype that they came in", aspect=Aspect.DTYPE, source="PROPERTIES X4"
)
BATCH_13 = _batch(
    13,
    "the mask is bool, or additive in the dtype of the keys",
    aspect=Aspect.DTYPE,
    source="the contract of attention; PROPERTIES X4",
)
BATCH_14 = _batch(
    14, "keys and values may each be a strided view: what is cached is that of their copies", source="PROPERTIES X1"
)
BATCH_15 = _batch(15, "an update changes neither its key nor its value", source="PROPERTIES X6")
BATCH_16 = _batch(
    16,
    "what the caller does to its arrays after an update does not show in the batch",
    Level.SHOULD,
    source="PROPERTIES X6",
)
BATCH_17 = _batch(17, "what an update returned keeps its values, whatever comes and goes later", source="PROPERTIES X7")
BATCH_18 = _batch(
    18,
    "offsets holds the number of tokens of every request, 0 for an idle slot, before and after every step; what was read "
    "keeps its values",
    source="mlx-lm 1e71de53; https://github.com/ml-explore/mlx-lm/issues/1806; PROPERTIES KV3",
)
BATCH_19 = _batch(
    19,
    "mask_length may be another number than that of the new tokens: the queries are those of the last M tokens",
    Level.SHOULD,
)
BATCH_20 = _batch(20, "any max_len that is enough gives the same results", source="PROPERTIES KV2")
BATCH_21 = _batch(
    21,
    "max_len is of each request: every one can be filled to its last token, however many steps the batch has gone",
    source="vllm-metal ce6bd02; PROPERTIES SC6",
)
BATCH_22 = _batch(
    22, "an update that takes a request past max_len is refused", aspect=Aspect.GUARD, source="PROPERTIES X9, PG5"
)
BATCH_23 = _batch(23, "a refused update changes nothing, in no slot", source="PROPERTIES X9, PG5")
BATCH_24 = _batch(24, "a cache longer than max_len is refused", aspect=Aspect.GUARD, source="PROPERTIES X9")
BATCH_25 = _batch(
    25, "a request is not taken into a slot that another one has", aspect=Aspect.GUARD, source="PROPERTIES X9"
)
BATCH_26 = _batch(26, "the removal from an idle slot is refused", aspect=Aspect.GUARD, source="PROPERTIES X9")
BATCH_27 = _batch(
    27,
    "a slot below 0, or max_requests and above, is refused, to add and to remove",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
BATCH_28 = _batch(28, "a refused add or remove changes nothing", source="PROPERTIES X9, PG5")
BATCH_29 = _batch(
    29,
    "an update is refused unless key and value are B×H×L×D with B = max_requests, the same H and L, and the H and D of the "
    "requests",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
BATCH_30 = _batch(
    30,
    "a cache of more than one row is refused, and one whose H or head dims are not those of the other requests",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)
BATCH_31 = _batch(
    31,
    "an update or a cache of another dtype than the requests is refused",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)
BATCH_32 = _batch(32, "what was rewound in a cache before it was added never shows", source="PROPERTIES KV1, BK5")
BATCH_33 = _batch(
    33,
    "batches have nothing in common: a story is the same whatever others do meanwhile, of whatever sizes and with whatever"
    " prompts, the same ones too",
    source="PROPERTIES X7, X11",
)
BATCH_34 = _batch(
    34, "max_requests and max_len below 1 are refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9"
)
BATCH_35 = _batch(
    35,
    "a decoder gives every request the tokens that it gives it alone, whoever is in the batch, comes or goes: what it sees "
    "are the request's own tokens, at positions that offsets tell",
    source="PROPERTIES BK1, judging",
)


CONTRACT = Contract(
    component="batching",
    title="key/value cache of a batch of requests",
    version=1,
    operations=(BatchingKVCache,),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "slots": (1, 2, 3, 5, 9, 33, 70),
        "head_dims": ("same", "different"),
        "empty_caches": (True, False),
        "offsets": (True, False),
        "limited": (True, False),
        "idle_updates": (True, False),
        "tokens": 33000,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
