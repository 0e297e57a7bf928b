"""What is asked of the simulated server: lengths, arrivals, shared prompts.

Published are means: figure 11 of Kwon et al. 2023 (the vLLM paper, SOSP, https://doi.org/10.1145/3600006.3613165) prints
those of the inputs and outputs of ShareGPT and Alpaca, and draws their shape without numbers. The shape here is an
assumption: geometric, the distribution on 1, 2, … that assumes least beyond its mean. Lengths of real requests, one by
one, are in the Azure LLM inference traces of 2023 (Patel et al. 2024, Splitwise): their CSV files are read as they are.

Also assumed: system prompts, how long they are, how many requests begin with one, and Zipf's law over them. They come
before the input whose length is published.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from inferspec.tools.told import told

POSITIONS = 2048
"""The longest sequence, prompt and output together, where lengths are drawn: that of OPT, which the paper serves."""

VOCABULARY = 32_000
BATCH = 4096
"""Requests that are drawn at once; what comes out depends on it as it does on the seed."""

PUBLISHED = {"alpaca": (19.31, 58.45, 30.0), "sharegpt": (161.31, 337.99, 1.8)}
"""Mean input and output (figure 11), and requests a second: about those of figure 13 (30 and 2)."""


@dataclass(eq=False, slots=True)
class Job:
    """A request as the scheduler takes it, and what the simulation knows of it.

    shared: how many of its first tokens are a system prompt; which: the system prompt's number; arrival, started: in
    seconds; ids: those that the stand-in gave; before: its state before the last token; chain: its states at all
    positions, for requests that are watched; chunk: the last that was computed, while it has blocks; ended: how often;
    doomed: to be cancelled once it runs.
    """

    tokens: list[int]
    max_tokens: int
    arrival: float
    shared: int = 0
    which: int = 0
    priority: int = 0
    eos: tuple[int, ...] = ()
    state: Any = None
    output: list[int] = field(default_factory=list)
    started: float | None = None
    ids: list[int] = field(default_factory=list)
    before: int = 0
    chain: list[int] | None = None
    chunk: Any = None
    ended: int = 0
    doomed: bool = False


@dataclass(frozen=True)
class Lengths:
    """Numbers of tokens of prompts and outputs. rows: pairs to draw from; without any, geometric with the means."""

    name: str
    mean_input: float
    mean_output: float
    rows: np.ndarray | None = None

    def draw(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Return so many inputs and outputs, each 1 or more."""
        if self.rows is not None:
            inputs, outputs = self.rows[rng.integers(0, len(self.rows), count)].T
            return inputs, outputs
        return rng.geometric(1 / self.mean_input, count), rng.geometric(1 / self.mean_output, count)

    @property
    def positions(self) -> int:
        """The longest sequence: the model's, or that of the trace."""
        return POSITIONS if self.rows is None else int(self.rows.sum(axis=1).max())

    @property
    def source(self) -> str:
        """Where the numbers are from, and what is assumed."""
        if self.rows is not None:
            return f"{len(self.rows)} pairs of lengths in {self.name}, drawn with replacement"
        means = f"means {self.mean_input} and {self.mean_output} of Kwon et al. 2023, figure 11"
        return f"{self.name}: {means}; the shape, geometric, is assumed"


def lengths(trace: str) -> Lengths:
    """The lengths of a published name, or of a CSV file with the columns ContextTokens and GeneratedTokens.

    ValueError when the file does not have them.
    """
    if trace in PUBLISHED:
        mean_input, mean_output, _ = PUBLISHED[trace]
        return Lengths(trace, mean_input, mean_output)
    path = Path(trace)
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            pairs = [(int(row["ContextTokens"]), int(row["GeneratedTokens"])) for row in csv.DictReader(lines)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        known = ", ".join(PUBLISHED)
        raise ValueError(
            f"--trace {trace}: neither {known} nor a CSV with ContextTokens, GeneratedTokens: {told(error)}"
        ) from error
    rows = np.array([pair for pair in pairs if min(pair) > 0])
    if not len(rows):
        raise ValueError(f"--trace {trace} has no request with a token in and a token out")
    mean_input, mean_output = rows.mean(axis=0)
    return Lengths(path.name, mean_input, mean_output, rows)


@dataclass(frozen=True)
class Workload:
    """Requests that arrive in a Poisson process, rate a second. share: of them, how many begin with a system prompt.

    prompts: how many there are of those; the k-th is asked for 1/k as often as the first. They have prompt_tokens
    tokens on average, from half as many to half as many again.
    """

    lengths: Lengths
    requests: int
    rate: float
    seed: int = 0
    share: float = 0.5
    prompts: int = 16
    prompt_tokens: int = 128

    def system_prompts(self) -> list[list[int]]:
        """The tokens of each, none a multiple of the others' length."""
        rng = np.random.default_rng([self.seed, 0])
        sizes = rng.integers(self.prompt_tokens // 2, self.prompt_tokens + self.prompt_tokens // 2 + 1, self.prompts)
        return [rng.integers(0, VOCABULARY, max(1, size)).tolist() for size in sizes]

    def jobs(self) -> Iterator[Job]:
        """The requests, in the order of their arrival."""
        rng, most = np.random.default_rng([self.seed, 1]), self.lengths.positions
        prompts = self.system_prompts()
        popularity = 1 / np.arange(1, self.prompts + 1)
        popularity /= popularity.sum()
        now = 0.0
        for first in range(0, self.requests, BATCH):
            arrivals = now + np.cumsum(rng.exponential(1 / self.rate, BATCH))
            now = float(arrivals[-1])
            inputs, outputs = self.lengths.draw(rng, BATCH)
            inputs = np.minimum(inputs, most - 1)
            which = rng.choice(self.prompts, BATCH, p=popularity)
            begun = rng.random(BATCH) < self.share
            tokens = rng.integers(0, VOCABULARY, int(inputs.sum())).tolist()
            ends = list(itertools.accumulate(inputs.tolist(), initial=0))
            for k in range(min(BATCH, self.requests - first)):
                own = tokens[ends[k] : ends[k + 1]]
                prompt = prompts[which[k]] if begun[k] and len(prompts[which[k]]) + len(own) < most else []
                limit = min(int(outputs[k]), most - len(prompt) - len(own))
                yield Job(prompt + own, limit, float(arrivals[k]), len(prompt), int(which[k]))
