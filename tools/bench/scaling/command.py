"""``inferspec bench scaling``: points in processes of their own, in an order drawn for each repeat."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from inferspec.tools import arguments
from inferspec.tools.bench import random_model, session
from inferspec.tools.bench.process import threads_environment
from inferspec.tools.bench.scaling import report
from inferspec.tools.bench.scaling.point import PAGE, Found, Point
from inferspec.tools.bench.shapes import SHAPES, shape
from inferspec.tools.generate import MODEL_HELP, Unusable, located, usable
from inferspec.tools.simulate import growth

BATCHES, CONTEXTS = "1,2,4,8,16,32", "128,256,512,1024,2048,4096,8192"
QUICK = {"batches": "1,2,4,8", "contexts": "128,256,512,1024", "repeats": 2, "tokens": 8}
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of a prompt, what all requests begin with."""
POOLS = growth.SIZES


def add_parser(commands: Any) -> None:
    """Add the command to the parser of ``inferspec bench``."""
    parser = commands.add_parser("scaling", help="tokens per second and memory of the engine, by batch and context")
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--model", help=MODEL_HELP)
    what.add_argument("--shape", metavar="NAME", help=f"random 4-bit weights: {', '.join(SHAPES)} (default: tiny)")
    add("--revision", metavar="SHA", help="the commit of a hub id")
    add("--batches", metavar="N,N,…", help=f"requests that run together (default: {BATCHES})")
    add("--contexts", metavar="N,N,…", help=f"lengths of their prompts (default: {CONTEXTS})")
    add("--at-batch", type=int, default=1, metavar="N", help="batch at which the context grows (default: 1)")
    add("--at-context", type=int, default=512, metavar="N", help="context at which the batch grows (default: 512)")
    add(
        "--grid",
        action="store_true",
        help="every batch with every context, in place of the two lines through that point",
    )
    add("--tokens", type=int, metavar="N", help="ids of each request (default: 16)")
    add("--repeats", type=int, metavar="N", help="processes of each point (default: 3)")
    add("--quick", action="store_true", help=f"fewer: batches {QUICK['batches']}, contexts {QUICK['contexts']}")
    add("--threads", type=int, default=1, metavar="N", help="default: 1")
    add("--seed", type=int, default=0, metavar="N")
    add("--json", type=arguments.written, metavar="FILE", help="write all figures here")
    add(
        "--plot", type=arguments.written, metavar="FILE.png|svg", help='draw them; needs pip install "inferspec[bench]"'
    )
    parser.set_defaults(command="bench")


def command(options: argparse.Namespace, console: Console) -> int:
    """Measure, show, write and draw."""
    batches, contexts = check(options)
    with source_of(options) as source:
        points = planned(options, source, batches, contexts)
        known = room(source)
        for point in points:
            if point.context + point.tokens > known:
                raise Unusable(
                    f"--contexts has {point.context}, with --tokens {point.tokens}; the model has {known} positions"
                )
        found = _measured(options, points, console)
        pools = POOLS[:3] if options.quick else POOLS
        with console.status("the allocator's growth"):
            costs = growth.cost(_block_manager, PAGE, pools)
    result = report.figures(options, points, found, costs)
    report.show(result, console)
    if options.json:
        report.write(result, options.json)
    if options.plot:
        report.draw(result, options.plot)
    return 0


def check(options: argparse.Namespace) -> tuple[list[int], list[int]]:
    """Batches and contexts; Unusable for what would only fail later. Fills in what --quick and defaults say."""
    normal = {"batches": BATCHES, "contexts": CONTEXTS, "repeats": 3, "tokens": 16}
    for name, value in (QUICK if options.quick else normal).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for name, least in (("tokens", 2), ("repeats", 1), ("threads", 1), ("at_batch", 1), ("at_context", 1)):
        if (value := getattr(options, name)) < least:
            raise Unusable(f"--{name.replace('_', '-')} is {value}; it takes {least} or more")
    session.check_picture(options)
    return numbers("--batches", options.batches), numbers("--contexts", options.contexts)


def numbers(option: str, text: str) -> list[int]:
    """Positive integers with commas; Unusable, naming the option, for anything else."""
    parts = session.names(text)
    if wrong := [part for part in parts if not part.isdigit() or int(part) < 1]:
        raise Unusable(f"{option} has {wrong[0]!r}; it takes numbers of 1 or more, with commas")
    if not parts:
        raise Unusable(f"{option} is empty; it takes numbers with commas")
    return sorted({int(part) for part in parts})


@contextlib.contextmanager
def source_of(options: argparse.Namespace) -> Iterator[Path]:
    """Where the weights lie; those of a shape are made, and go away afterwards."""
    if options.model:
        yield usable(lambda: located(options.model, options.revision))
        return
    with tempfile.TemporaryDirectory(prefix="inferspec-bench-") as folder:
        yield random_model.write(shape(options.shape or "tiny"), Path(folder), options.seed)


def room(source: Path) -> int:
    """How many positions the model has."""
    from inferspec.impl import loading
    from inferspec.impl.model_config import ModelConfig

    return usable(lambda: ModelConfig.read(loading.read(source)[0]).max_positions)


def planned(options: argparse.Namespace, source: Path, batches: Sequence[int], contexts: Sequence[int]) -> list[Point]:
    """The points: two lines or the grid, and prompts that share more and more."""
    pairs = [(batch, options.at_context) for batch in batches] + [(options.at_batch, context) for context in contexts]
    if options.grid:
        pairs = [(batch, context) for batch in batches for context in contexts]
    found = [Point(str(source), batch, context, options.tokens, 0, options.seed) for batch, context in pairs]
    batch = max(2, min(batches[-1], 8))
    for share in SHARES:
        length = int(share * options.at_context) // PAGE * PAGE
        found.append(Point(str(source), batch, options.at_context, options.tokens, length, options.seed))
    return list(dict.fromkeys(found))


def _measured(options: argparse.Namespace, points: Sequence[Point], console: Console) -> dict[Point, list[Found]]:
    """Every point so many times, each repeat in an order of its own."""
    random, found = np.random.default_rng(options.seed), {point: list[Found]() for point in points}
    with session.progress(console) as bar:
        task = bar.add_task("points", total=options.repeats * len(points))
        for _ in range(options.repeats):
            for index in random.permutation(len(points)).tolist():
                point = points[index]
                bar.update(task, description=f"batch {point.batch}, context {point.context}")
                found[point].append(in_a_process(point, options.threads))
                bar.advance(task)
    return found


def in_a_process(point: Point, threads: int) -> Found:
    """Measure a point; Unusable, with the last line that it wrote, when its process fails."""
    command = [sys.executable, "-m", "inferspec.tools.bench.scaling.point", json.dumps(asdict(point))]
    environment = {**os.environ, **threads_environment(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise Unusable(f"batch {point.batch}, context {point.context}: {last}")
    return Found(**json.loads(done.stdout.splitlines()[-1]))


def _block_manager(num_blocks: int, block_size: int) -> Any:
    from inferspec.impl.block_manager import BlockManager

    return BlockManager(num_blocks, block_size, True)
