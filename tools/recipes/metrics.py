"""Goldens of the metrics: differences and means of float64 tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from inferspec.spec import metrics as spec
from inferspec.tools.recipes import Case, Draw

CLOCKS = {"zero": 0.0, "monotonic": 86_400.0, "epoch": 1.7e9}


def differences(arrival: float, token_times: Sequence[float]) -> dict[str, torch.Tensor]:
    clock = torch.tensor([arrival, *token_times], dtype=torch.float64)
    waits = clock.diff()
    return {
        "ttft": waits[:1].sum(),
        "tpot": waits[1:].mean() if len(waits) > 1 else waits[:0],
        "itl": waits[1:],
        "e2el": waits.sum(),
    }


def means(
    arrivals: Sequence[float],
    token_times: Sequence[Sequence[float]],
    prompt_tokens: Sequence[int],
    cached_tokens: Sequence[int],
) -> dict[str, torch.Tensor]:
    served = [i for i, times in enumerate(token_times) if len(times)]
    each = [differences(arrivals[i], token_times[i]) for i in served]
    together = {
        part: torch.cat([one[part].reshape(-1) for one in each]).mean() for part in ("ttft", "tpot", "itl", "e2el")
    }
    times = torch.cat([torch.tensor(token_times[i], dtype=torch.float64) for i in served])
    span = times.max() - torch.tensor([arrivals[i] for i in served], dtype=torch.float64).min()
    computed = torch.tensor([prompt_tokens[i] - cached_tokens[i] for i in served], dtype=torch.float64)
    return {**together, "output_rate": times.numel() / span, "prefill_rate": computed.sum() / span}


def _line(draw: Draw, clock: str, gaps: Sequence[int]) -> tuple[float, list[float]]:
    """(arrival, token times) some seconds into the clock; gaps: sixteenths of a second, 0 within a chunk."""
    now = arrival = CLOCKS[clock] + abs(float(draw.values(1, size=8.0)[0]))
    times = []
    for gap in gaps:
        now += gap * (1 / 16 + abs(float(draw.values(1, size=1 / 64)[0])))
        times.append(now)
    return arrival, times


def _one(name: str, requirement: Any, seed: int, clock: str, gaps: Sequence[int]) -> Case:
    def inputs(draw: Draw) -> dict[str, Any]:
        arrival, times = _line(draw, clock, gaps)
        return {"arrival": arrival, "token_times": times}

    return Case(name, requirement, seed, {"clocks": clock}, inputs, differences)


def _many(
    name: str,
    requirement: Any,
    seed: int,
    clock: str,
    lines: Sequence[Sequence[int]],
    prompts: Sequence[tuple[int, int]],
) -> Case:
    def inputs(draw: Draw) -> dict[str, Any]:
        drawn = [_line(draw, clock, gaps) for gaps in lines]
        return {
            "arrivals": [arrival for arrival, _ in drawn],
            "token_times": [times for _, times in drawn],
            "prompt_tokens": [prompt for prompt, _ in prompts],
            "cached_tokens": [cached for _, cached in prompts],
        }

    return Case(name, requirement, seed, {"clocks": clock}, inputs, means)


CASES = (
    _one("latencies", spec.METR_04, 801, "zero", (40, 1, 2, 1, 3)),
    _one("latencies-of-chunks", spec.METR_05, 802, "monotonic", (24, 0, 0, 4, 0, 5)),
    _one("latencies-of-one-token", spec.METR_06, 803, "monotonic", (9,)),
    _one("latencies-epoch", spec.METR_08, 804, "epoch", (31, 2, 1, 1, 4, 1)),
    _many(
        "means", spec.METR_22, 811, "monotonic", ((20, 9, 9), (5, 1, 1, 1, 1, 1, 1), (3,)), ((40, 0), (7, 0), (3, 0))
    ),
    _many("rates", spec.METR_25, 812, "epoch", ((12, 2, 3, 2), (), (16, 0, 1)), ((100, 64), (500, 0), (33, 16))),
)
