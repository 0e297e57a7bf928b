"""The nano-vLLM post's designs as it prints them: each is the right one with a mistake put back, and the suites reject it."""

from __future__ import annotations

import re
from collections.abc import Sequence as Ids
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inferspec.conformance.bridge.arrays import arrays
from inferspec.conformance.bridge.binding import bind
from inferspec.conformance.bridge.drivers import driver_of
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.subjects import nano_vllm
from inferspec.conformance.subjects.nano_vllm.block_manager import Block, BlockManager, BlockTable, OutOfBlocks, Prefix
from inferspec.conformance.subjects.nano_vllm.scheduler import Scheduled, Scheduler, Sequence
from inferspec.conformance.suite import Profile, all_tests
from inferspec.impl import block_manager as impl
from inferspec.spec import block_manager, scheduler
from inferspec.spec.contract import Operation, Requirement

STANDARD = Profile(diagnose=False, shrink=False)
QUICK = replace(STANDARD, name="quick")


class Offered(LocalSubject):
    """A block manager or a scheduler of this process, used by its driver."""

    def __init__(self, operation: type[Operation], thing: Any, component: str) -> None:
        name, kind = operation.signature.operation, arrays("numpy")
        target = bind(operation, thing, kind, plain=False)
        target.driver = driver_of(component, name)
        if name == "Scheduler":
            target.beside = {"BlockManager": bind(block_manager.BlockManager, BlockManager, kind, plain=False).build}
        self.targets = {name: target}
        super().__init__({name: operation}, envelope=nano_vllm.ENVELOPE)

    def reset(self) -> None:
        self._executor = Executor(self.targets)


HISTORY = (
    ("allocate", {"tokens": (1, 2, 3, 4, 5, 6)}),
    ("mark_computed", {"table": 1, "n": 3}),
    ("allocate", {"tokens": (1, 2, 3, 4)}),
    ("mark_computed", {"table": 1, "n": 6}),
    ("append", {"table": 1, "tokens": (7, 8, 9)}),
    ("allocate", {"tokens": (9,)}),
    ("append", {"table": 3, "tokens": (5,)}),
    ("free", {"table": 3}),
    ("append", {"table": 1, "tokens": (10, 11)}),
    ("mark_computed", {"table": 1, "n": 11}),
    ("free", {"table": 1}),
    ("free", {"table": 1}),
    ("allocate", {"tokens": (1, 2, 3, 4, 5, 6, 20, 21)}),
    ("mark_computed", {"table": 13, "n": 8}),
    ("free", {"table": 13}),
    ("allocate", {"tokens": (8, 8, 8, 8, 8, 8)}),
    ("allocate", {"tokens": (1, 2, 3, 4, 5, 6, 7, 8)}),
    ("allocate", {"tokens": (1, 2, 3, 4, 5)}),
)
"""A story in which the contract leaves no choice: hits of what was computed, a refusal, a table freed twice, a block that
is hit while free, and the longest prefix evicted first."""


def told(subject: LocalSubject) -> list[str]:
    """The history, line by line."""
    pool = {"num_blocks": 6, "block_size": 2, "prefix_caching": True, "colliding": False}
    subject.reset()
    seen = subject.call(Call("BlockManager", {**pool, "steps": HISTORY})).results
    lines = []
    for number, (step, given) in enumerate(HISTORY, 1):
        shown = {part: x for part, x in seen.items() if part.startswith(f"{number} ")}
        lines += [f"{number}. {step} {' '.join(map(str, given.values()))}"]
        lines += [f"   {part.partition(' ')[2]}: {np.ravel(x).astype(int).tolist()}" for part, x in shown.items()]
    return lines


def test_three_designs_tell_the_same_history(snapshot):
    """The golden of block managers: ids and counts, so text. It is told by this design, and the oracle and impl agree."""
    history = told(Offered(block_manager.BlockManager, BlockManager, "block_manager"))
    assert "\n".join(history) == snapshot
    assert sorted(told(LocalSubject({"BlockManager": block_manager.BlockManager}))) == sorted(history)
    assert sorted(told(Offered(block_manager.BlockManager, impl.BlockManager, "block_manager"))) == sorted(history)


def rejected(operation: type[Operation], thing: Any, requirement: Requirement) -> bool:
    """Whether any test of the requirement fails."""
    component = operation.__module__.rpartition(".")[2]
    subject = Offered(operation, thing, component)
    tests = [test for test in all_tests() if test.requirement is requirement]
    trials = [Trial(subject, requirement) for _ in tests]
    for test, trial in zip(tests, trials, strict=True):
        test.run(trial, STANDARD)
    assert trials
    return any(trial.outcome.state != "passed" for trial in trials)


class FreesTwice(BlockManager):
    """A table that is freed again gives its blocks back again, so that two owners get them."""

    def free(self, table: BlockTable) -> None:
        for block in reversed(table.blocks):
            block.owners -= 1
            if block.owners <= 0:
                self.spare.append(block)


class LeaksWhenFull(BlockManager):
    """Blocks are taken one by one; those taken before none was left are lost."""

    def check_room(self, needed: int) -> None:
        """Nobody looks before."""

    def allocate_block(self) -> Block:
        if not self.num_free:
            raise OutOfBlocks("out of blocks")
        return super().allocate_block()


class KnownOnAllocation(BlockManager):
    """Full blocks are known as soon as they are allocated: the next request hits what nobody has computed."""

    def allocate(self, tokens: Ids[int]) -> BlockTable:
        table = super().allocate(tokens)
        self.mark_computed(table, len(tokens))
        return table


class ForgetsParents(BlockManager):
    """The hash of a block is asked for where none was ever stored: every block is known by its own tokens alone."""

    def prefix(self, tokens: Ids[int], index: int, before: list[Prefix]) -> Prefix:
        return super().prefix(tokens, index, [])


class HitsTheWholePrompt(BlockManager):
    """All full blocks of a prompt may be hit: nothing is left to compute the first logits from."""

    def match(self, tokens: Ids[int]) -> list[Prefix]:
        return super().match([*tokens, 0])


class KeepsEntries(BlockManager):
    """The prefix cache is never told that a block was taken for other tokens."""

    def allocate_block(self) -> Block:
        known = dict(self.prefix_cache)
        block = super().allocate_block()
        self.prefix_cache.update(known)
        return block


class CountsEachAlone(Scheduler):
    """Whether there are blocks is asked for each request by itself, and they are taken later: too many are admitted."""

    def can_allocate(self, sequence: Sequence) -> bool:
        return self.block_manager.blocks_for(len(sequence.token_ids)) <= self.block_manager.num_free

    def prefills(self) -> list[Scheduled]:
        for sequence in self.running:
            if sequence.block_table is None and not super().can_allocate(sequence):
                raise OutOfBlocks("out of blocks")
        return super().prefills()


class TakesAnything(Scheduler):
    """A request that can never fit is taken: everybody is preempted for it, again and again, or waits behind it."""

    def check_fits(self, request: Any) -> None:
        """Nobody looks before."""


class PreemptsForAnybody(Scheduler):
    """Whoever waits has a running request preempted, whatever the priority: two of them take turns for ever."""

    def preemptible(self, sequence: Sequence) -> list[Sequence]:
        return list(self.running)


class RecomputesThePrompt(Scheduler):
    """A preempted request computes its prompt again, and not what it had generated."""

    def preempt(self, sequence: Sequence, preempted: list[Sequence]) -> None:
        super().preempt(sequence, preempted)
        sequence.token_ids = list(sequence.request.tokens)


@pytest.mark.parametrize(
    ("design", "requirement"),
    [
        (FreesTwice, block_manager.BLK_24),
        (FreesTwice, block_manager.BLK_26),
        (LeaksWhenFull, block_manager.BLK_22),
        (LeaksWhenFull, block_manager.BLK_23),
        (KnownOnAllocation, block_manager.BLK_09),
        (ForgetsParents, block_manager.BLK_10),
        (HitsTheWholePrompt, block_manager.BLK_08),
        (KeepsEntries, block_manager.BLK_17),
    ],
)
def test_a_block_manager_of_the_post_is_rejected(design, requirement):
    assert not rejected(block_manager.BlockManager, BlockManager, requirement)
    assert rejected(block_manager.BlockManager, design, requirement)


@pytest.mark.parametrize(
    ("design", "requirement"),
    [
        (CountsEachAlone, scheduler.SCHED_24),
        (TakesAnything, scheduler.SCHED_26),
        (PreemptsForAnybody, scheduler.SCHED_20),
        (PreemptsForAnybody, scheduler.SCHED_24),
        (RecomputesThePrompt, scheduler.SCHED_21),
    ],
)
def test_a_scheduler_of_the_post_is_rejected(design, requirement):
    assert not rejected(scheduler.Scheduler, Scheduler, requirement)
    assert rejected(scheduler.Scheduler, design, requirement)


class AdvancesAtOnce(Scheduler):
    """What is scheduled counts as computed at once, as in vLLM, whose engine ends when its model raises."""

    def chunk(self, sequence: Sequence, num_tokens: int) -> Scheduled:
        one = super().chunk(sequence, num_tokens)
        sequence.num_computed += num_tokens
        return one


class HitsWithinTheStep(AdvancesAtOnce):
    """A prompt hits what another one of its step has yet to compute, as in vLLM: their keys are written before anybody reads."""

    def can_allocate(self, sequence: Sequence) -> bool:
        found = super().can_allocate(sequence)
        if found:
            assert sequence.block_table
            self.block_manager.mark_computed(sequence.block_table, self.known(sequence))
        return found

    def known(self, sequence: Sequence) -> int:
        """How many tokens of a prompt that is admitted are taken for computed: those of this step."""
        left = self.max_prefill_tokens - self.num_pending()
        return min(sequence.num_computed + left, len(sequence.token_ids))


class HitsTheNextStep(HitsWithinTheStep):
    """A prompt hits what another one of its step computes in a later one."""

    def known(self, sequence: Sequence) -> int:
        return len(sequence.token_ids)


def states_of(
    design: type[Scheduler], asked: Ids[Requirement] = scheduler.CONTRACT.requirements, **envelope: list[Any]
) -> dict[str, set[str]]:
    """Requirements of schedulers by what became of a test of theirs, of a design that claims an envelope. Of all of them quick
    draws enough: what it is to reject is asked alone."""
    profile = QUICK if asked is scheduler.CONTRACT.requirements else STANDARD
    subject = Offered(scheduler.Scheduler, design, "scheduler")
    subject.description.envelope["scheduler"] |= envelope
    states: dict[str, set[str]] = {}
    for test in (test for test in all_tests() if test.requirement in asked):
        trial = Trial(subject, test.requirement)
        test.run(trial, profile)
        states.setdefault(trial.outcome.state, set()).add(test.requirement.id)
    return states


HITS = (scheduler.SCHED_07, scheduler.SCHED_29)
"""What is wrong where a prompt hits what is not computed."""

PROMPTS_FIRST = "SCHED-14"
"""SHOULD, and unmet by design: prompts hold up who generates."""


@pytest.mark.parametrize(
    ("design", "envelope"),
    [
        (AdvancesAtOnce, {"void_steps": [False]}),
        (HitsWithinTheStep, {"void_steps": [False], "chunks": ["together"]}),
    ],
)
def test_a_scheduler_may_declare_what_its_engine_is(design, envelope):
    states = states_of(design, **envelope)
    assert states.pop("outside_envelope") == {"SCHED-18", "SCHED-20", "SCHED-28"}
    assert states.pop("failed", set()) <= {PROMPTS_FIRST}
    assert set(states) == {"passed"}


def test_hits_within_the_step_are_rejected_where_they_are_not_declared():
    assert {one.id for one in HITS} <= states_of(HitsWithinTheStep, HITS, void_steps=[False])["failed"]


def test_hits_of_what_a_later_step_computes_are_always_rejected():
    envelope = {"void_steps": [False], "chunks": ["together"]}
    assert {one.id for one in HITS} <= states_of(HitsTheNextStep, HITS, **envelope)["failed"]


def test_ids_that_are_not_of_the_pool_are_told_as_they_are():
    class CountsFromOne(BlockManager):
        def __init__(self, num_blocks: int, block_size: int = 16, prefix_caching: bool = True) -> None:
            super().__init__(num_blocks, block_size, prefix_caching)
            for block in self.spare:
                block.block_id += 1

    trial = Trial(Offered(block_manager.BlockManager, CountsFromOne, "block_manager"), block_manager.BLK_01)
    next(test for test in all_tests() if test.requirement is block_manager.BLK_01).run(trial, STANDARD)
    found = re.search(r"block_ids has \[(\d+)\]; ids of the pool are 0 … (\d+)", str(trial.outcome.message))
    assert found
    assert int(found[1]) == int(found[2]) + 1
