"""Who has which block of the key/value memory: reference counts, a prefix cache, eviction.

`num_blocks` blocks have room for `block_size` tokens each. Whoever schedules requests asks for a table of blocks:

    BlockManager(num_blocks, block_size, prefix_caching=True)
    .allocate(tokens) -> table    blocks for a prompt: those of its prefix that are cached, and others for the rest
    .append(table, tokens)        room for more tokens, at the table's end
    .mark_computed(table, n)      the keys and values of the table's first n tokens are in their blocks
    .free(table)                  the table is given back, and is none any more
    .num_free                     how many blocks are in no table; those that only the cache knows are free too

A table shows `block_ids` (in the order of its tokens, each 0 … num_blocks - 1), or is the sequence of them, and
`num_cached_tokens`, how many of its first tokens need no computing; it may show `num_tokens`, how many it was given. Blocks are cached when they are full and
computed, and stay so until they are taken for other tokens. Only whole blocks are hit, and never all tokens: the last
one gives the logits. So no table ever writes into a block that another one has. Where another table computed the same,
`mark_computed` may give a table that copy and take its own block back, as SGLang's radix cache does: ids are read anew then.

A call is a story: `steps` of one manager, with a second one beside it, of the same sizes. A table has the number of the step
that allocated it. After each step the story gives what can be observed, whatever the step was:

    3 free           num_free
    3 table 1        [num_cached_tokens, num_tokens, *block_ids] of every table in use; where it
                     tells no num_tokens, what it was given
    3 refused        the step raised, or an allocation gave None, or an append False
    3 absent         it is about a table that never came to be, and was left out
    3 changed        it changed the caller's list of tokens, or one given to an earlier step that the caller has not overwritten
    3 free abroad    num_free of the second manager, after a step that concerns it

Block ids are told in the order in which they were first seen. Steps beside the methods: `overwrite(step)`, the caller puts
other tokens into the list that it gave to an earlier step; `abroad(method, table, …)`, the second manager is asked to do
something with a table of the first; `meanwhile(tokens, gone)`, the second manager allocates and computes tokens, and gives
them back or not; `made(num_blocks, block_size, …)`, a manager of other sizes is made, and kept, or one with a prefix cache
beside those without, or without; `pass_by(groups)`, the tables of a group, each of a line of
tokens, are allocated, computed, freed and forgotten, so that those of the next may lie where they lay; told as `table -1`, …
`colliding`: all tokens have one hash, though they differ.

What must hold is judged on the history of observations (`spec/block_histories.py`), so that which block is taken is
as free as the contract leaves it. Who evicts by another rule than age, say what is hit least, says `eviction: ["any"]` in the
envelope, and is asked for no order. Ids have up to 63 bits, as what stands for a picture does; who refuses those of more than 31
is not asked for them. Left open: an empty prompt, whether block ids that were read are the table's own list,
marking less than was marked, which of two blocks with the same tokens is hit, and whether the cache still knows one of them,
and what follows the two, after the other was taken: a manager may know a block by the block before it.

Source: the nano-vLLM post, parts 1 and 4; PROPERTIES PC1 to PC10, PG1 to PG5.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import (
    STORY,
    Answer,
    Answers,
    Arguments,
    Aspect,
    Contract,
    Level,
    Operation,
    Requirement,
    Signature,
)
from inferspec.spec.numerics import Precision, f64

POST = "nano-vLLM post, parts 1 and 4"

Manager = SimpleNamespace
"""The model: `owners` (tables that have the block, by id), `free` (ids, the first to be freed first), `content` (what
the cache knows a block by, by id) and `cached` (the block, by what it is known by)."""

Table = SimpleNamespace
"""`block_ids`, `tokens`, `cached` and `computed` (numbers of tokens), `home` (its manager, None once it was freed)."""

MERSENNE = 2**61 - 1
"""What Python's hash of an int is a remainder of."""


class Colliding(int):
    """A token whose hash is that of every other."""

    def __hash__(self) -> int:
        return 7


class Ranks:
    """Ids by the order in which they were first seen; what is no id of the pool stays as it is."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self.seen: dict[int, int] = {}

    def __call__(self, ids: Sequence[int]) -> list[int]:
        return [self.seen.setdefault(i, len(self.seen)) if 0 <= i < self.num_blocks else i for i in map(int, ids)]


def blocks_of(tokens: int, size: int) -> int:
    """How many blocks so many tokens fill, the last one perhaps in part."""
    return -(-tokens // size)


class BlockManager(Operation):
    """The plainest manager that keeps the contract. What it does is counted, so every budget is 0."""

    signature = Signature.parse("BlockManager(num_blocks, block_size, prefix_caching, colliding, steps)")
    parts = STORY
    methods = ("allocate", "append", "mark_computed", "free")
    takes: ClassVar = {
        "allocate": ("tokens",),
        "append": ("table", "tokens"),
        "mark_computed": ("table", "n"),
        "free": ("table",),
    }
    optional_options: ClassVar = {"prefix_caching": ("prefix_caching", (True,))}

    def evaluate(self, a: Arguments, precision: Precision) -> Answers:
        return {part: Answer(value, np.zeros(value.shape)) for part, value in self.told(a).items()}

    def part_dtype(self, part: str, a: Arguments) -> str:
        return "int64"

    def guard(self, a: Arguments) -> None:
        if a.num_blocks < 1 or a.block_size < 1:
            raise ValueError(f"{a.num_blocks} blocks of {a.block_size} tokens")

    # the story

    def told(self, a: Arguments) -> dict[str, np.ndarray]:
        """What every step gives, in float64."""
        story = Story(self, a)
        parts: dict[str, Any] = {}
        for number, (step, given) in enumerate(a.steps, 1):
            parts |= {f"{number} {name}": value for name, value in story.do(number, step, given).items()}
        return {part: f64(value) for part, value in parts.items()}

    # what a manager does

    def fresh(self, a: Arguments) -> Manager:
        free = list(range(a.num_blocks))
        return Manager(
            size=a.block_size, caching=a.prefix_caching, owners=[0] * a.num_blocks, free=free, content={}, cached={}
        )

    def allocate(self, m: Manager, tokens: list[int]) -> Table:
        hits = self.hits(m, tokens)
        self.check_room(m, self.needed(m, tokens, hits))
        for block in hits:
            self.share(m, block)
        fresh = [self.take(m) for _ in range(blocks_of(len(tokens), m.size) - len(hits))]
        return self.table(m, tokens, hits, fresh)

    def table(self, m: Manager, tokens: list[int], hits: list[int], fresh: list[int]) -> Table:
        cached = len(hits) * m.size
        return Table(block_ids=hits + fresh, tokens=self.taken(tokens), cached=cached, computed=cached, home=m)

    def append(self, m: Manager, table: Table, tokens: list[int]) -> None:
        self.check_table(m, table)
        more = blocks_of(len(table.tokens) + len(tokens), m.size) - len(table.block_ids)
        self.check_more(m, more)
        table.block_ids = table.block_ids + [self.take(m) for _ in range(more)]
        table.tokens = table.tokens + self.taken(tokens)

    def mark_computed(self, m: Manager, table: Table, n: int) -> None:
        self.check_table(m, table)
        self.check_computed(table, n)
        if m.caching:
            for index in range(table.computed // m.size, self.whole_blocks(m, table, n)):
                self.publish(m, table, index)
        table.computed = max(table.computed, n)

    def free(self, m: Manager, table: Table) -> None:
        self.check_table(m, table)
        for block in self.leaving(table):
            self.leave(m, block)
        table.home = None

    def num_free(self, m: Manager) -> int:
        return len(m.free)

    # what can be wrong

    def check_room(self, m: Manager, needed: int) -> None:
        if needed > len(m.free):
            raise ValueError(f"{needed} blocks of {len(m.free)}")

    def check_more(self, m: Manager, needed: int) -> None:
        self.check_room(m, needed)

    def check_table(self, m: Manager, table: Table) -> None:
        self.check_home(m, table)
        self.check_used(m, table)

    def check_home(self, m: Manager, table: Table) -> None:
        if table.home is not None and table.home is not m:
            raise ValueError("a table of another manager")

    def check_used(self, m: Manager, table: Table) -> None:
        if table.home is None:
            raise ValueError("a table that was freed")

    def check_computed(self, table: Table, n: int) -> None:
        if not 0 <= n <= len(table.tokens):
            raise ValueError(f"{n} of {len(table.tokens)} tokens")

    # the prefix cache

    def taken(self, tokens: list[int]) -> list[int]:
        """The tokens as they are kept: the caller's own list stays out of it."""
        return list(tokens)

    def key(self, m: Manager, tokens: Sequence[int], index: int) -> Any:
        """What the cache knows a block by: all tokens up to its end."""
        return tuple(tokens[: (index + 1) * m.size])

    def hit_limit(self, m: Manager, tokens: list[int]) -> int:
        """How many blocks may be hit, so that a token is left."""
        return (len(tokens) - 1) // m.size

    def hits(self, m: Manager, tokens: list[int]) -> list[int]:
        """The cached blocks that a prompt begins with."""
        found: list[int] = []
        for index in range(self.hit_limit(m, tokens) if m.caching else 0):
            block = m.cached.get(self.key(m, tokens, index))
            if block is None:
                break
            found.append(block)
        return found

    def needed(self, m: Manager, tokens: list[int], hits: list[int]) -> int:
        """How many blocks must be free: those to take, and those of the hits that are in no table."""
        return blocks_of(len(tokens), m.size) - sum(block not in m.free for block in hits)

    def whole_blocks(self, m: Manager, table: Table, n: int) -> int:
        """How many blocks of a table are full and computed when n tokens are."""
        return n // m.size

    def publish(self, m: Manager, table: Table, index: int) -> None:
        """Have the cache know a block; where it knows one with the same tokens, that one stays."""
        key, block = self.key(m, table.tokens, index), table.block_ids[index]
        if key not in m.cached:
            m.cached[key], m.content[block] = block, key

    # blocks

    def share(self, m: Manager, block: int) -> None:
        if block in m.free:
            m.free.remove(block)
        m.owners[block] += 1

    def take(self, m: Manager) -> int:
        block = self.next(m)
        m.free.remove(block)
        self.forget(m, block)
        m.owners[block] = 1
        return block

    def next(self, m: Manager) -> int:
        """The block to take: one that is not cached, or else the one that has been free for longest."""
        return next((block for block in m.free if block not in m.content), m.free[0])

    def forget(self, m: Manager, block: int) -> None:
        if block in m.content:
            del m.cached[m.content.pop(block)]

    def leaving(self, table: Table) -> list[int]:
        """A table's blocks in the order in which they become free: a block is of no use without those before it."""
        return table.block_ids[::-1]

    def leave(self, m: Manager, block: int) -> None:
        m.owners[block] -= 1
        if m.owners[block] == 0:
            m.free.append(block)


class Story:
    """A story on its way: both managers and the tables of the first one, by the number of the step."""

    def __init__(self, operation: BlockManager, a: Arguments) -> None:
        self.operation, self.a = operation, a
        self.manager, self.abroad = operation.fresh(a), operation.fresh(a)
        self.others: list[Manager] = []
        self.tables: dict[int, Table] = {}
        self.live: list[int] = []
        self.given: dict[int, list[int]] = {}
        self.kept: dict[int, list[int]] = {}
        """The lists as they were given."""
        self.passed: dict[str, list[int]] = {}
        self.ranks = Ranks(a.num_blocks)

    def do(self, number: int, step: str, given: Any) -> dict[str, Any]:
        """Do a step; return what can be observed after it."""
        seen: dict[str, Any] = {}
        if "table" in given and given["table"] not in self.tables:
            seen["absent"] = 1
        else:
            try:
                self._do(number, step, dict(given))
            except Exception:  # a fault without its guard may stumble later
                seen["refused"] = 1
        if any(tokens != self.kept[k] for k, tokens in self.given.items()):
            seen["changed"] = 1
        seen["free"] = self.operation.num_free(self.manager)
        if step in ("abroad", "meanwhile"):
            seen["free abroad"] = self.operation.num_free(self.abroad)
        if step == "pass_by":
            seen |= self.passed
        return seen | {f"table {k}": self._shown(self.tables[k]) for k in self.live}

    def _do(self, number: int, step: str, given: dict[str, Any]) -> None:
        do = self.operation
        if "tokens" in given:
            kind = Colliding if self.a.colliding else int
            given["tokens"] = tokens = [kind(token) for token in given["tokens"]]
            if step != "meanwhile":
                self.given[number], self.kept[number] = tokens, list(tokens)
        if step == "allocate":
            self.tables[number] = do.allocate(self.manager, given["tokens"])
            self.live.append(number)
        elif step == "overwrite":
            if (kept := self.given.pop(given["step"], None)) is not None:
                kept[:] = [token + 1 for token in kept]
        elif step == "pass_by":
            for lines in given["groups"]:
                tables = [do.allocate(self.manager, list(line)) for line in lines]
                # A mark may give a table other blocks than those that it took.
                for table in tables:
                    self.passed[f"table {-1 - len(self.passed)}"] = self._shown(table)
                for table, line in zip(tables, lines, strict=True):
                    do.mark_computed(self.manager, table, len(line))
                for table in tables:
                    do.free(self.manager, table)
        elif step == "made":
            self.others.append(do.fresh(Arguments(**{**vars(self.a), **given})))
        elif step == "meanwhile":
            table = do.allocate(self.abroad, given["tokens"])
            do.mark_computed(self.abroad, table, len(given["tokens"]))
            if given["gone"]:
                do.free(self.abroad, table)
        else:
            manager = self.abroad if step == "abroad" else self.manager
            method, table = given.pop("method", step), given.pop("table")
            getattr(do, method)(manager, self.tables[table], **given)
            if step == "free" and table in self.live:
                self.live.remove(table)

    def _shown(self, table: Table) -> list[int]:
        return [table.cached, len(table.tokens), *self.ranks(table.block_ids)]


def _requirement(
    number: int, text: str, source: str, aspect: Aspect = Aspect.VALUE, level: Level = Level.MUST
) -> Requirement:
    return Requirement(f"BLK-{number:02}", text, "BlockManager", level, aspect, source)


VLLM = "https://github.com/vllm-project/vllm/pull"
NANO = "https://github.com/GeeeekExplorer/nano-vllm/commit"

BLK_01 = _requirement(
    1, "a table of n tokens has ceil(n / block_size) blocks of the pool, no two of them the same", "PROPERTIES PG1, PG3"
)
BLK_02 = _requirement(
    2,
    "an append fills the table's last block before it takes others, and the blocks that a table has stay where they are until "
    "it is freed, but that a mark may give it the cached copies of those that are computed, and take its own back",
    "PROPERTIES PG3",
)
BLK_03 = _requirement(
    3,
    "num_cached_tokens stays what it was at allocation; num_tokens, where a table tells it, is the number of tokens allocated and appended",
    "PROPERTIES PC8, PC10",
)
BLK_04 = _requirement(
    4,
    "a block is in two tables only where both have the same tokens up to its end, full and computed",
    "PROPERTIES PG1",
)
BLK_05 = _requirement(
    5, "num_free is the number of blocks in no table, after every step; a shared block counts once", "PROPERTIES PG1"
)
BLK_06 = _requirement(
    6, "when all tables are freed, in any order, one table can have the whole pool", "PROPERTIES PG4, SC6"
)
BLK_07 = _requirement(
    7, "a prompt hits all leading whole blocks that are cached, short of its last token", "PROPERTIES PC9, PC10"
)
BLK_08 = _requirement(
    8,
    "a hit is of whole blocks and leaves at least one token to compute, of a prompt that is cached to its end too",
    f"{VLLM}/3239; {VLLM}/11186; PROPERTIES PC2",
)
BLK_09 = _requirement(9, "only blocks that are full and marked as computed are hit", f"{NANO}/f64d821; PROPERTIES PC5")
BLK_10 = _requirement(10, "a block is hit only where all tokens before it are the same too", f"{POST}; PROPERTIES PC3")
BLK_11 = _requirement(
    11,
    "tokens are compared, whatever their hash: ids that are equal in their low bits, or have one hash, are not confused",
    "https://github.com/waybarrios/vllm-mlx/pull/444; PROPERTIES PC3",
)
BLK_12 = _requirement(12, "blocks filled by appended tokens are cached as those of prompts are", "PROPERTIES PC9, SC1")
BLK_13 = _requirement(
    13,
    "freed blocks stay cached until they are taken for other tokens, and are hit again, time after time",
    f"{NANO}/9fa256a; PROPERTIES PC6, PC9",
)
BLK_14 = _requirement(
    14,
    "a block that was hit while free is in use like any other: it goes to no other table and is freed with its last owner",
    "https://github.com/sgl-project/mini-sglang/pull/52; PROPERTIES PC6",
)
BLK_15 = _requirement(
    15,
    "of the cached blocks that are free, the one freed first is taken first; of one table, the last block first",
    "PROPERTIES PC9",
)
BLK_16 = _requirement(
    16,
    "no cached block is taken while one that is not cached is free",
    "https://github.com/sgl-project/sglang/pull/10637",
    level=Level.SHOULD,
)
BLK_17 = _requirement(
    17, "a block that was taken for other tokens is not hit for its former ones", f"{VLLM}/4761; {NANO}/f64d821"
)
BLK_18 = _requirement(
    18,
    "an allocation that hits free blocks does not take them for its other tokens, and counts each once",
    f"{VLLM}/11565; PROPERTIES PC7",
)
BLK_19 = _requirement(19, "an allocation of more blocks than are free is refused", "PROPERTIES PG5, PC7", Aspect.GUARD)
BLK_20 = _requirement(
    20,
    "an allocation or an append whose blocks are free is admitted: blocks that are hit in use need none",
    f"https://github.com/vllm-project/vllm-metal/commit/9b27db0; {VLLM}/11565; PROPERTIES PC7, SC6",
)
BLK_21 = _requirement(21, "an append that needs more blocks than are free is refused", "PROPERTIES PG5", Aspect.GUARD)
BLK_22 = _requirement(22, "a refused allocation changes nothing", f"{VLLM}/11565; PROPERTIES PC7, PG5")
BLK_23 = _requirement(23, "a refused append changes nothing", "PROPERTIES PG5")
BLK_24 = _requirement(
    24,
    "a table that was freed is refused: by free, append and mark_computed",
    f"https://github.com/NVIDIA/TensorRT-LLM/pull/14937; {POST}; PROPERTIES PG2",
    Aspect.GUARD,
)
BLK_25 = _requirement(
    25, "a table of another manager is refused: by free, append and mark_computed", "PROPERTIES PG2", Aspect.GUARD
)
BLK_26 = _requirement(26, "a table that is refused changes nothing, in neither manager", "PROPERTIES PG2")
BLK_27 = _requirement(
    27, "marking less than no tokens, or more than the table has, is refused", "PROPERTIES X9", Aspect.GUARD
)
BLK_28 = _requirement(28, "a refused mark changes nothing", "PROPERTIES X9, PC5")
BLK_29 = _requirement(29, "without prefix caching no table has cached tokens or a block of another", "PROPERTIES PC1")
BLK_30 = _requirement(
    30,
    "the caller's list of tokens is not changed, and what the caller does to it later does not show",
    "PROPERTIES X6",
)
BLK_31 = _requirement(31, "managers have nothing in common, of whatever sizes they are", "PROPERTIES X7")
BLK_32 = _requirement(
    32, "a pool of no blocks, or of blocks of no tokens, is refused", "PROPERTIES X9", Aspect.GUARD, Level.SHOULD
)


CONTRACT = Contract(
    component="block_manager",
    title="block tables with a prefix cache",
    version=1,
    operations=(BlockManager,),
    envelope={
        "prefix_caching": (True, False),
        "hashes": ("own", "one for all"),
        "token_ids": ("small", "large"),
        "id_bits": (63, 31),
        "eviction": ("oldest first", "any"),
        "block_sizes": (1, 2, 3, 4, 8, 16, 32, 64, 256),
        "blocks": 1100,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
