"""``inferspec bench ops``: operations of the kit beside those of other libraries."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console

from inferspec.tools.bench import ops, peers, session
from inferspec.tools.bench.cases import OPS, Case, dtypes
from inferspec.tools.bench.judge import Judge
from inferspec.tools.bench.machine import Limits, cache_bytes
from inferspec.tools.bench.peers import Peer
from inferspec.tools.bench.process import Crashed, Process
from inferspec.tools.bench.result import FAILED, REFUSED, TIMED, CaseResult, Contender, Result
from inferspec.tools.bench.rounds import Entry, measure
from inferspec.tools.bench.shapes import SHAPES, cases

BEYOND = 2
"""Times the last-level cache: what the copies of a contender's arguments take together."""

PEERS = tuple(peer for peer in peers.OTHERS if peer.name != "llama.cpp")
"""llama.cpp has no operation of its own that Python could call."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of ``inferspec bench``."""
    parser = commands.add_parser("ops", help="operations beside MLX, mlx-lm, torch and transformers")
    add = parser.add_argument
    add(
        "--shapes",
        action="append",
        default=[],
        metavar="PRESET|OP:SIZES",
        help=f"{', '.join(SHAPES)} (default: qwen3-0.6b), or one in full: quantized_matmul:M=1,K=1024,N=3072,G=128; repeatable",
    )
    add("--only", default="", metavar="OPS", help=f"of a preset only these, with commas: {', '.join(OPS)}")
    add("--dtypes", default="float32,bfloat16", metavar="NAMES", help="default: float32,bfloat16")
    add(
        "--warm",
        action="store_true",
        help="the same arrays in every call; else they come from memory, as a model's weights do",
    )
    session.add_common(parser, rounds=20, seconds=4.0)
    parser.set_defaults(command="bench")


def run(options: argparse.Namespace, console: Console) -> Result:
    """Measure what the options ask for; Unusable for options that cannot be used."""
    session.check(options)
    wanted = dtypes(options.dtypes)
    chosen = cases(options.shapes or ["qwen3-0.6b"], wanted, session.names(options.only))
    contenders, missing = peers.chosen(session.names(options.peers), options.ours_path, PEERS)
    with session.progress(console) as bar:
        task = bar.add_task("the machine's limits", total=len(chosen) + 1)
        limits = session.measured_limits(options.threads, wanted)
        bar.advance(task)
        bench = Bench(contenders, options, limits)
        found = []
        with session.processes(contenders, options.threads) as processes:
            for case in chosen:
                bar.update(task, description=case.name)
                found.append(bench.measured(case, processes))
                bar.advance(task)
    return session.result("ops", options, limits, contenders, missing, found)


@dataclass(frozen=True)
class Bench:
    """Contenders, settings, and the machine that they are measured on."""

    peers: Sequence[Peer]
    options: argparse.Namespace
    limits: Limits

    def measured(self, case: Case, processes: Mapping[str, Process]) -> CaseResult:
        """Judge the contenders of a case, and time those that the contract accepts."""
        prepared = self._prepared(case, processes)
        judge = Judge(case, self.options.seed)
        contenders, entries = [], []
        for peer in self.peers:
            one = prepared[peer.name]
            if one.output is None:
                if one.error:
                    contenders.append(Contender(peer.name, FAILED, message=one.error))
                continue
            verdict = judge.verdict(one.output)
            state = TIMED if verdict.accepted else REFUSED
            contenders.append(
                Contender(peer.name, state, one.note, verdict.precision, _finite(verdict.worst), message=verdict.reason)
            )
            if verdict.accepted or self.options.time_refused:
                sample = partial(_sample, processes[peer.host], peer.name, one.calls)
                entries.append(Entry(peer.name, sample, one.cost))
        times = measure(entries, self.options.rounds, self.options.seconds, self.options.seed)
        for contender in contenders:
            if contender.name in times:
                contender.times = times[contender.name].times.get("", {})
                if broke := times[contender.name].broke:
                    contender.state, contender.message, contender.times = FAILED, broke, {}
        for process in processes.values():
            _quietly(process, ops.release)
        return self._result(case, contenders)

    def _prepared(self, case: Case, processes: Mapping[str, Process]) -> dict[str, ops.Prepared]:
        """Each process makes its contenders ready; one that dies of it costs its own alone."""
        footprint = 0 if self.options.warm else BEYOND * cache_bytes()
        found: dict[str, ops.Prepared] = {}
        for host, process in processes.items():
            mine = {peer.name: peer.place for peer in self.peers if peer.host == host}
            try:
                found |= process.do(ops.prepare, case, self.options.seed, mine, footprint, self.options.threads)
            except Crashed as error:
                found |= {name: ops.Prepared(None, str(error)) for name in mine}
        return found

    def _result(self, case: Case, contenders: list[Contender]) -> CaseResult:
        traffic, work = case.cost
        bound, least = self.limits.bound(traffic, work, case.dtype)
        return CaseResult(case.name, case.op, case.dtype, "call", traffic, work, bound, least, contenders)


def _sample(process: Process, name: str, calls: int) -> dict[str, float]:
    return {"": process.do(ops.sample, name, calls)}


def _finite(x: float) -> float | None:
    return x if x < float("inf") else None


def _quietly(process: Process, task: Any) -> None:
    try:
        process.do(task)
    except Crashed:
        return
