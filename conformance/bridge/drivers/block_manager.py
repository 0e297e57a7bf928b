"""How a block manager is used: the steps of a story, done to the subject's own managers and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from inferspec.conformance.bridge.arrays import Arrays
from inferspec.conformance.bridge.drivers import Handed, made, taken
from inferspec.conformance.bridge.drivers import step as done
from inferspec.spec.block_manager import BlockManager, Colliding, Ranks, blocks_of


class _Story:
    """Both managers, and the tables of the first one by the number of the step that allocated them."""

    def __init__(self, make: Any, given: Mapping[str, Any]) -> None:
        self.make, self.caching = make, given["prefix_caching"]
        sizes = {name: given[name] for name in ("num_blocks", "block_size")}
        self.manager, self.second = self.build(**sizes), self.build(**sizes)
        self.others: list[Any] = []
        self.block_size = given["block_size"]
        self.kind = Colliding if given["colliding"] else int
        self.ranks = Ranks(given["num_blocks"])
        self.tables: dict[int, Any] = {}
        self.counts: dict[int, int] = {}
        """How many tokens a table was given, by its number."""
        self.live: list[int] = []
        self.lists: dict[int, list[int]] = {}
        self.kept: dict[int, list[int]] = {}
        """The lists as they were given."""
        self.passed: dict[str, list[int]] = {}
        self.number = 0

    def do(self, number: int, step: str, given: Mapping[str, Any]) -> dict[str, Any]:
        self.number = number
        seen: dict[str, Any] = {}
        if "table" in given and given["table"] not in self.tables:
            seen[f"{number} absent"] = 1
        else:
            seen |= done(number, partial(getattr(self, step), **given), ())
        if any(tokens != self.kept[k] for k, tokens in self.lists.items()):
            seen[f"{number} changed"] = 1
        seen[f"{number} free"] = _read(self.manager, "num_free")
        if step in ("abroad", "meanwhile"):
            seen[f"{number} free abroad"] = _read(self.second, "num_free")
        if step == "pass_by":
            seen |= {f"{number} {name}": shown for name, shown in self.passed.items()}
        return seen | {f"{number} table {k}": self._shown(self.tables[k], self.counts[k]) for k in self.live}

    def build(self, num_blocks: int, block_size: int, prefix_caching: bool | None = None) -> Handed:
        caching = self.caching if prefix_caching is None else prefix_caching
        # Caching is the default: a manager that can only do one of both need not have the parameter.
        options = {} if caching else taken(self.make, prefix_caching=False)
        manager = made(self.make, options, num_blocks=num_blocks, block_size=block_size)
        return Handed(manager, BlockManager.takes)

    def allocate(self, tokens: tuple[int, ...]) -> None:
        free = _read(self.manager, "num_free")
        table = self.manager.allocate(self._list(tokens))
        # What vLLM's and SGLang's give where there is no room; where there is plenty, it is a stub's.
        if table is None and (self.tables or blocks_of(len(tokens), self.block_size) > free):
            raise ValueError("allocate gave None")
        self.tables[self.number] = table
        self.counts[self.number] = len(tokens)
        self.live.append(self.number)

    def append(self, table: int, tokens: tuple[int, ...]) -> None:
        if self.manager.append(self.tables[table], self._list(tokens)) is False:
            raise ValueError("append gave False")
        self.counts[table] += len(tokens)

    def mark_computed(self, table: int, n: int) -> None:
        self.manager.mark_computed(self.tables[table], n)

    def free(self, table: int) -> None:
        self.manager.free(self.tables[table])
        if table in self.live:
            self.live.remove(table)

    def pass_by(self, groups: Sequence[Sequence[tuple[int, ...]]]) -> None:
        for lines in groups:
            # Nothing refers to those of the group before any more.
            tables = [self.manager.allocate([self.kind(token) for token in tokens]) for tokens in lines]
            # A mark may give a table other blocks than those that it took.
            for table, tokens in zip(tables, lines, strict=True):
                self.passed[f"table {-1 - len(self.passed)}"] = self._shown(table, len(tokens))
            for table, tokens in zip(tables, lines, strict=True):
                self.manager.mark_computed(table, len(tokens))
            for table in tables:
                self.manager.free(table)
            del table, tables

    def overwrite(self, step: int) -> None:
        tokens = self.lists.pop(step, [])
        tokens[:] = [self.kind(token + 1) for token in tokens]

    def abroad(self, method: str, table: int, **given: Any) -> None:
        arguments = {name: self._list(x) if isinstance(x, tuple) else x for name, x in given.items()}
        getattr(self.second, method)(self.tables[table], *arguments.values())

    def made(self, **given: Any) -> None:
        self.others.append(self.build(**given))

    def meanwhile(self, tokens: tuple[int, ...], gone: bool) -> None:
        table = self.second.allocate([self.kind(token) for token in tokens])
        self.second.mark_computed(table, len(tokens))
        if gone:
            self.second.free(table)

    def _list(self, tokens: tuple[int, ...]) -> list[int]:
        self.lists[self.number] = given = [self.kind(token) for token in tokens]
        self.kept[self.number] = list(given)
        return given

    def _shown(self, table: Any, count: int) -> list[int]:
        """count: the number of tokens that it was given, which a table need not tell: its caller knows it."""
        tokens = _read(table, "num_tokens") if hasattr(table, "num_tokens") else count
        return [int(_read(table, "num_cached_tokens")), int(tokens), *self.ranks(_ids(table))]


def _ids(table: Any) -> Any:
    """The block ids that a table shows, or that it is the list of."""
    # A class with no more than `__getitem__` is a sequence too.
    if not hasattr(table, "block_ids") and (isinstance(table, Iterable) or hasattr(table, "__getitem__")):
        return list(table)
    return _read(table, "block_ids")


def _read(thing: Any, name: str) -> Any:
    """An attribute, or what a method of that name returns."""
    attribute = getattr(thing, name)
    return attribute() if callable(attribute) else attribute


def drive(make: Any, given: Mapping[str, Any], to: Arrays) -> dict[str, Any]:
    """make: the subject's class, or a function that makes a manager."""
    story = _Story(make, given)
    seen: dict[str, Any] = {}
    for number, (step, arguments) in enumerate(given["steps"], 1):
        seen |= story.do(number, step, arguments)
    return seen


DRIVERS = {"BlockManager": drive}
