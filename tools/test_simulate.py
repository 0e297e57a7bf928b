"""``inferspec simulate``: that it is right about right servers, and finds what is wrong with others."""

import copy
import json

import numpy as np
import pytest

from inferspec.impl.block_manager import BlockManager
from inferspec.impl.scheduler import Scheduler, State
from inferspec.tools import cli
from inferspec.tools.simulate import growth, server
from inferspec.tools.simulate.server import Costs, Faults, Server
from inferspec.tools.simulate.standin import continuation
from inferspec.tools.simulate.workload import POSITIONS, Job, Lengths, Workload, lengths

SHORT = Lengths("short", 9.0, 12.0)


class Given(Workload):
    """Requests that a test made."""

    def __init__(self, *jobs):
        super().__init__(SHORT, len(jobs), 1.0)
        object.__setattr__(self, "given", jobs)

    def jobs(self):
        return iter(self.given)


class Kept(Workload):
    """Remembers its requests."""

    def jobs(self):
        object.__setattr__(self, "seen", [])
        for job in super().jobs():
            self.seen.append(job)
            yield job


def busy(requests=400, seed=0, workload=Workload):
    """More than the pool of `serve` has room for."""
    return workload(SHORT, requests, 200.0, seed, prompt_tokens=12, prompts=5)


def serve(workload, manager=BlockManager, scheduler=Scheduler, faults=0.0, num_blocks=100, limit=24, **more):
    blocks = manager(num_blocks, 4)
    return Server(
        blocks,
        scheduler(blocks, limit, 40, **more),
        workload,
        faults=Faults(faults, 7),
        costs=Costs(1 / 32, 1 / 1024, 1 / 1024),
    ).run()


@pytest.fixture(autouse=True)
def _short_requests(monkeypatch):
    """A pool of a few hundred slots is enough, and a step without an id is soon too many."""
    monkeypatch.setattr("inferspec.tools.simulate.workload.POSITIONS", 300)
    monkeypatch.setattr(server, "LONG", 600)


# The workload.


@pytest.mark.parametrize("trace", ["alpaca", "sharegpt"])
def test_lengths_have_the_published_means(trace):
    found = lengths(trace)
    inputs, outputs = found.draw(np.random.default_rng(0), 1_000_000)
    assert (round(inputs.mean()), round(outputs.mean())) == (round(found.mean_input), round(found.mean_output))
    assert min(inputs.min(), outputs.min()) == 1


def test_lengths_of_a_trace_are_its_rows(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\nx,7,3\nx,5,0\nx,11,2\n")
    found = lengths(str(file))
    inputs, outputs = found.draw(np.random.default_rng(0), 100)
    assert set(zip(inputs.tolist(), outputs.tolist(), strict=True)) == {(7, 3), (11, 2)}
    assert "2 pairs of lengths in trace.csv" in found.source
    assert (found.mean_input, found.mean_output, found.positions) == (9, 2.5, 13)


def test_a_workload_is_a_function_of_its_seed():
    def taken(seed):
        return [(job.tokens, job.max_tokens, job.arrival) for job in busy(seed=seed).jobs()]

    assert taken(3) == taken(3)
    assert taken(3) != taken(4)


def test_requests_arrive_at_their_rate_and_fit_and_share_prompts():
    workload = Workload(lengths("alpaca"), 20_000, 30.0, share=0.25)
    jobs = list(workload.jobs())
    assert len(jobs) == 20_000
    assert round(20_000 / jobs[-1].arrival) == 30
    assert round(100 * sum(job.shared > 0 for job in jobs) / len(jobs)) == 25
    prompts = workload.system_prompts()
    assert all(job.tokens[: job.shared] == prompts[job.which][: job.shared] for job in jobs)
    counts = [sum(job.shared > 0 and job.which == k for job in jobs) for k in (0, 1, 3)]
    assert round(counts[0] / counts[1]) == 2
    assert round(counts[0] / counts[2]) == 4


def test_no_request_is_longer_than_the_model_takes(monkeypatch):
    monkeypatch.setattr("inferspec.tools.simulate.workload.POSITIONS", POSITIONS)
    jobs = list(Workload(Lengths("long", 900.0, 900.0), 2000, 1.0).jobs())
    assert max(len(job.tokens) + job.max_tokens for job in jobs) == POSITIONS
    assert min(job.max_tokens for job in jobs) >= 1


# Right servers.


@pytest.mark.parametrize("faults", [0.0, 0.05])
def test_a_run_is_a_function_of_its_seeds(faults):
    first, second = serve(busy(), faults=faults), serve(busy(), faults=faults)
    second.wall, second.processor = first.wall, first.processor
    assert first == second
    assert first != serve(busy(seed=1), faults=faults)


@pytest.mark.parametrize("lookahead", [0, 1, 5])
@pytest.mark.parametrize("faults", [0.0, 0.05])
def test_every_request_gets_its_own_ids(faults, lookahead):
    workload = busy(800, workload=Kept)
    counts = serve(workload, faults=faults, lookahead=lookahead)
    assert counts.problems == []
    assert counts.preemptions > 0
    assert all(job.ended == 1 and job.state is State.FINISHED for job in workload.seen)
    for job in workload.seen:
        assert job.output == continuation(job.tokens, len(job.output))
    assert sum(len(job.output) == job.max_tokens for job in workload.seen) >= counts.finished
    assert counts.output_tokens == sum(len(job.output) for job in workload.seen)


def test_faults_lose_nothing_and_leak_nothing():
    counts = serve(busy(2000), faults=0.05)
    assert min(counts.cancelled, counts.failed_steps, counts.exhaustions) > 10
    assert (counts.problems, counts.leaked, counts.finished + counts.cancelled) == ([], 0, 2000)


def test_what_a_request_waits_for_is_counted():
    # In 1/1024 s: 32 for a step and 1 for a token. The first needs one step for its prompt of 4 and two for further ids.
    jobs = [Job([1, 2, 3, 4], 3, 0.0), Job([5], 1, 0.0)]
    counts = serve(Given(*jobs), limit=1)
    assert [1024 * delay for delay in counts.delays] == [0, 36 + 33 + 33]
    assert 1024 * counts.seconds == 36 + 33 + 33 + 33


def test_memory_is_counted_in_slots(monkeypatch):
    monkeypatch.setattr(server, "LOOKS", 1)
    blocks = BlockManager(200, 4)
    jobs = [Job([1, 2, 3, 4, 5], 3, 0.0)]
    memory = Server(blocks, Scheduler(blocks, 4, 40), Given(*jobs), costs=Costs(1.0, 0.0, 0.0)).run().memory
    # 5, 6 and 7 tokens in 2 blocks of 4; whole pieces are of 5 + 3 slots, of 5 + 4, and of the longest.
    assert (memory.filled, memory.tokens, memory.allocated) == (5 + 6 + 7, 5 + 6 + 7, 3 * 8)
    assert (memory.oracle, memory.pow2, memory.max) == (3 * 8, 3 * 9, 3 * SHORT.positions)


def test_shared_slots_are_filled_once(monkeypatch):
    monkeypatch.setattr(server, "LOOKS", 1)
    blocks = BlockManager(200, 4)
    prompt = list(range(9))
    jobs = [Job(list(prompt), 3, 0.0), Job(list(prompt), 2, 0.5)]
    counts = Server(blocks, Scheduler(blocks, 4, 40), Given(*jobs), costs=Costs(1.0, 0.0, 0.0)).run()
    memory = counts.memory
    # Steps: 9; 10 and the other's ninth (8 are shared); 11 and 10.
    assert memory.tokens == 9 + (10 + 9) + (11 + 10)
    assert memory.filled == 9 + (10 + 1) + (11 + 2)
    assert memory.allocated == 4 * (3 + 4 + 4)
    assert (counts.cached_tokens, counts.prompt_tokens) == (8, 18)


# Wrong servers.


class OneKindAtATime(Scheduler):
    """Right too: while prompts are computed, nobody generates."""

    def _decodes(self, preempted):
        self._admit()
        return () if any(not entry.decoding for entry in self._running) else super()._decodes(preempted)


def test_slots_of_requests_that_pause_are_filled():
    counts = serve(busy(), scheduler=OneKindAtATime)
    assert (counts.problems, counts.leaked) == ([], 0)
    usual = serve(busy()).memory
    assert round(10 * counts.memory.filled / counts.memory.allocated) == round(10 * usual.filled / usual.allocated)


class KeepsCancelled(Scheduler):
    """The blocks of a request that is cancelled while it runs are nobody's."""

    def cancel(self, request):
        entry = self._entries.get(id(request))
        if entry is not None and entry.table is not None:
            self._running.remove(entry)
            entry.table = None
        super().cancel(request)


class LosesBlocks(BlockManager):
    """Every hundredth table that is freed keeps its last block."""

    freed = 0

    def free(self, table):
        self.freed += 1
        if self.freed % 100 == 0:
            table._blocks.pop()
        super().free(table)


class PublishesEarly(BlockManager):
    """A prompt's blocks can be hit before they are computed."""

    def allocate(self, tokens):
        table = super().allocate(tokens)
        super().mark_computed(table, table.num_tokens)
        return table


class FreesShared(BlockManager):
    """Counts no owners."""

    def free(self, table):
        for block in table._blocks:
            block.owners = 1
        super().free(table)


class HashesBlocksAlone(BlockManager):
    """Finds a block by its own tokens, whatever stands before them."""

    def _hits(self, tokens):
        found = super()._hits(tokens)
        own = tuple(tokens[len(found) * self.block_size : (len(found) + 1) * self.block_size])
        if found and len(tokens) > (len(found) + 1) * self.block_size:
            other = next((p.block for (_, t), p in self._prefixes.items() if t[:1] == own[:1] and p.block), None)
            if other is not None and other not in found:
                found.append(other)
        return found


class ForgetsOutput(Scheduler):
    """A preempted request goes on from its prompt."""

    def _preempt(self):
        entry = super()._preempt()
        if entry.request.output:
            del entry.tokens[-1]
        return entry


class DropsPreempted(Scheduler):
    """A preempted request never comes back."""

    def _wait(self, entry, state):
        if state is State.PREEMPTED:
            del self._entries[id(entry.request)]
        else:
            super()._wait(entry, state)


class NeverResumes(Scheduler):
    """A preempted request waits for ever."""

    def _wait(self, entry, state):
        if state is State.PREEMPTED:
            entry.request.state = state
        else:
            super()._wait(entry, state)


class FinishesTwice(Scheduler):
    """A request that ends is told of twice."""

    def update(self, step, tokens):
        return 2 * super().update(step, tokens)


class IgnoresStarts(Scheduler):
    """A prompt whose beginning is cached is computed as if it began a token later."""

    def _chunk(self, entry, count, lookahead=0):
        chunk = super()._chunk(entry, count, lookahead)
        if 0 < chunk.start < len(entry.request.tokens) - 1 and len(chunk.tokens) > 1:
            chunk = copy.copy(chunk)
            chunk.start, chunk.tokens = chunk.start + 1, chunk.tokens[1:]
        return chunk


class MarksTooSoon(Scheduler):
    """A step is taken for computed when it is handed out."""

    def schedule(self):
        step = super().schedule()
        for chunk in step.prefills:
            table = self._entries[id(chunk.request)].table
            self.block_manager.mark_computed(table, chunk.start + len(chunk.tokens))
        return step


class RunsTooFar(Scheduler):
    """A request generates one id more than it may."""

    def _advance(self, entry, chunk, ids):
        entry.request.max_tokens += 1
        done = super()._advance(entry, chunk, ids)
        entry.request.max_tokens -= 1
        return done


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (KeepsCancelled, "blocks are free"),
        (LosesBlocks, "blocks are"),
        (PublishesEarly, "computes what is not its own"),
        (FreesShared, "not its own"),
        (HashesBlocksAlone, "not its own"),
        (ForgetsOutput, "not its own"),
        (DropsPreempted, "no id came"),
        (NeverResumes, "no id came"),
        (FinishesTwice, "ended 2 times"),
        (IgnoresStarts, "not its own"),
        (MarksTooSoon, "not its own"),
        (RunsTooFar, "finished with"),
    ],
)
def test_what_is_wrong_is_found(wrong, text):
    parts = {"manager" if issubclass(wrong, BlockManager) else "scheduler": wrong}
    for seed in range(6):
        problems = serve(busy(1500, seed), faults=0.1, **parts).problems
        assert len(problems) < 25
        if any(text in problem for problem in problems):
            return
    pytest.fail(f"found at best {problems}")


# The allocator's growth.


def test_an_allocator_that_looks_at_its_whole_pool_is_told_from_one_that_does_not():
    class Clock:
        now = 0

    class Costly(BlockManager):
        def allocate(self, tokens):
            Clock.now += self.num_blocks
            return super().allocate(tokens)

    class Constant(BlockManager):
        def allocate(self, tokens):
            Clock.now += 1
            return super().allocate(tokens)

    sizes = (64, 640)
    linear, flat = (growth.cost(make, 2, sizes, lambda: Clock.now) for make in (Costly, Constant))
    assert linear[640] == 10 * linear[64]
    assert flat[640] == flat[64] > 0


def test_our_allocator_does_not_look_at_its_whole_pool():
    found = growth.cost(BlockManager, 4, (256, 32_768))
    assert found[32_768] < 8 * found[256]


# The command.


@pytest.fixture
def _long_requests(monkeypatch):
    monkeypatch.setattr("inferspec.tools.simulate.workload.POSITIONS", POSITIONS)
    monkeypatch.setattr(growth, "SIZES", (256, 1024))
    monkeypatch.setattr(growth.cost, "__defaults__", ((256, 1024), *growth.cost.__defaults__[1:]))


@pytest.mark.usefixtures("_long_requests")
def test_the_command_says_what_was_simulated_and_what_came_of_it(capsys, tmp_path):
    file = tmp_path / "found.json"
    assert cli.main(["simulate", "--requests", "300", "--faults", "0.01", "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "nothing lost, nothing leaked" in out
    assert "the shape, geometric, is assumed" in out
    found = json.loads(file.read_text())
    assert sum(found["requests"].values()) == 300
    assert (found["leaked_blocks"], found["problems"]) == (0, [])
    assert found["memory"]["used"]["max"] < found["memory"]["used"]["pow2"] < found["memory"]["used"]["paged"]
    assert found["settings"]["rate"] == 30
    assert len(found["allocator"]["microseconds_per_operation"]) == 2


@pytest.mark.usefixtures("_long_requests")
def test_the_plot_is_a_picture_or_a_page(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    for name, begin in {"plot.png": b"\x89PNG", "plot.html": b"<!doctype html>"}.items():
        assert cli.main(["simulate", "--requests", "100", "--plot", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_bytes().startswith(begin)


ADAPTER = """
from inferspec.impl.scheduler import Scheduler as Ours

class Scheduler(Ours):
    def cancel(self, request):
        self._entries[id(request)].table = None
        super().cancel(request)
"""


@pytest.mark.usefixtures("_long_requests")
def test_another_scheduler_is_judged(capsys, monkeypatch, tmp_path):
    (tmp_path / "forgetful.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["simulate", "--requests", "300", "--faults", "0.1", "--scheduler", "forgetful"]) == 1
    assert "forgetful" in capsys.readouterr().out


@pytest.mark.usefixtures("_long_requests")
def test_another_scheduler_may_be_a_module_of_a_package(capsys, monkeypatch, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "__init__.py").write_text("")
    (tmp_path / "theirs" / "scheduler.py").write_text(ADAPTER)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["simulate", "--requests", "300", "--faults", "0.1", "--scheduler", "theirs"]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--requests", "0"], "--requests is 0; it takes 1 or more"),
        (["--faults", "1"], "--faults is 1.0; it takes less than 1"),
        (["--share", "1.5"], "--share is 1.5; it takes 0 … 1"),
        (["--rate", "0"], "--rate is 0.0; it takes a positive number"),
        (["--num-blocks", "3"], "--num-blocks 3 of 16 hold fewer than 300 tokens"),
        (["--trace", "nowhere"], "--trace nowhere: neither alpaca, sharegpt nor a CSV"),
        (["--scheduler", "nowhere"], "--scheduler nowhere: No module named 'nowhere'"),
        (["--scheduler", "json"], "--scheduler json has neither Scheduler nor BlockManager"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(capsys, arguments, message):
    assert cli.main(["simulate", *arguments]) == 2
    out = capsys.readouterr().out
    assert message in out
    assert out.count("\n") == 1
