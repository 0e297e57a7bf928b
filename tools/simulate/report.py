"""What a simulation found: the figures, as tables, as JSON and as a drawing."""

from __future__ import annotations

import html
import io
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from inferspec.tools.simulate.server import Counts, percentile

PAPER = {"paged": 0.963, "oracle": 0.382, "pow2": 0.268, "max": 0.204}
"""Share of the key/value memory that holds tokens, for vLLM and three ways to reserve: figure 2 of Kwon et al. 2023."""

WAYS = {
    "paged": "blocks, as they are needed",
    "oracle": "one piece, as long as it will be",
    "pow2": "one piece, output rounded up to a power of two",
    "max": "one piece of the longest length",
}


def figures(counts: Counts, settings: Mapping[str, Any], growth: Mapping[int, float], peak: float) -> dict[str, Any]:
    """All that is reported. growth: seconds of an operation by blocks of the pool; peak: bytes of the process."""
    memory, delays = counts.memory, counts.delays
    used = {
        "paged": _ratio(memory.filled, memory.allocated),
        "oracle": _ratio(memory.tokens, memory.oracle),
        "pow2": _ratio(memory.tokens, memory.pow2),
        "max": _ratio(memory.tokens, memory.max),
    }
    sizes = sorted(growth)
    return {
        "settings": dict(settings),
        "requests": {
            "finished": counts.finished,
            "cancelled": counts.cancelled,
            "never_ended": settings["requests"] - counts.finished - counts.cancelled,
        },
        "faults": {
            "failed_steps": counts.failed_steps,
            "exhaustions": counts.exhaustions,
            "cancelled": counts.cancelled,
        },
        "steps": counts.steps,
        "ids": {"generated": counts.generated, "output": counts.output_tokens, "checked": counts.generated},
        "watched_requests": counts.watched,
        "ghosts_checked": counts.ghosts,
        "memory": {
            "used": used,
            "paper": PAPER,
            "wasted_by_blocks": 1 - used["paged"],
            "tokens_per_filled_slot": _ratio(memory.tokens, memory.filled),
            "pool_in_use": _ratio(memory.allocated, memory.seconds * settings["num_blocks"] * settings["block_size"]),
        },
        "hit_rate": _ratio(counts.cached_tokens, counts.prompt_tokens),
        "prompt_tokens": counts.prompt_tokens,
        "prefill_tokens": counts.prefill_tokens,
        "preemptions": counts.preemptions,
        "queueing_delay_seconds": {
            "mean": statistics.fmean(delays) if delays else 0.0,
            "p50": percentile(delays, 0.5),
            "p99": percentile(delays, 0.99),
        },
        "requests_in_a_step": _ratio(counts.batched, counts.seconds),
        "virtual_seconds": counts.seconds,
        "throughput": {
            "requests_per_second": _ratio(counts.finished, counts.seconds),
            "ids_per_second": _ratio(counts.output_tokens, counts.seconds),
        },
        "allocator": {
            "microseconds_per_operation": {str(size): 1e6 * growth[size] for size in sizes},
            "largest_by_smallest": _ratio(growth[sizes[-1]], growth[sizes[0]]) if sizes else None,
        },
        "leaked_blocks": counts.leaked,
        "wall_seconds": counts.wall,
        "processor_seconds": counts.processor,
        "peak_bytes": peak,
        "problems": counts.problems,
    }


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def tables(found: Mapping[str, Any], source: str) -> list[Table]:
    """The figures to look at."""
    settings, memory, delay = found["settings"], found["memory"], found["queueing_delay_seconds"]
    what = Table("simulated", "", title=f"{settings['requests']:,} requests in virtual time", show_header=False)
    rows = {
        "lengths": source,
        "arrivals": f"Poisson, {settings['rate']:g} a second",
        "system prompts (assumed)": f"{settings['share']:.0%} of the requests begin with one of {settings['prompts']}, "
        f"{settings['prompt_tokens']} tokens on average, Zipf",
        "time of a step (assumed)": f"{settings['fixed'] * 1e3:g} ms + {settings['per_prefill_token'] * 1e3:g} ms a token of a "
        f"prompt + {settings['per_decode'] * 1e3:g} ms a decode",
        "pool": f"{settings['num_blocks']:,} blocks of {settings['block_size']}; at most {settings['max_requests']} requests "
        f"and {settings['max_prefill_tokens']:,} tokens of prompts in a step, lookahead {settings['lookahead']}",
        "under test": settings["scheduler"],
        "model": "a stand-in: a hash of the tokens, read from the slots of the blocks",
    }
    for name, value in rows.items():
        what.add_row(name, value)
    space = Table("memory that is taken", "holds tokens", "in the paper", title="key/value memory")
    for way, name in WAYS.items():
        space.add_row(name, f"{memory['used'][way]:.1%}", f"{PAPER[way]:.1%}")
    space.caption = (
        "paper: Kwon et al. 2023, figure 2, in its experiments of section 6.2; there pieces lose memory between them too, here "
        "they do not"
    )
    result = Table("figure", "value", title="result", show_header=False)
    for name, value in {
        "finished / cancelled / never ended": " / ".join(f"{n:,}" for n in found["requests"].values()),
        "faults: steps that failed, times all blocks were taken": f"{found['faults']['failed_steps']:,}, "
        f"{found['faults']['exhaustions']:,}",
        "blocks leaked": f"{found['leaked_blocks']}",
        "ids, each compared with the stand-in's own": f"{found['ids']['checked']:,}",
        f"slots looked at, of {found['watched_requests']:,} watched requests": f"{found['ghosts_checked']:,}",
        "memory wasted by blocks": f"{memory['wasted_by_blocks']:.2%} (vLLM's announcement, June 2023: under 4%)",
        "tokens for each slot that is filled (sharing)": f"{memory['tokens_per_filled_slot']:.3f}",
        "pool in use": f"{memory['pool_in_use']:.1%}",
        "hit rate, tokens of prompts": f"{found['hit_rate']:.1%}",
        "preemptions": f"{found['preemptions']:,}",
        "queueing delay, mean / p50 / p99": f"{delay['mean']:.3f} / {delay['p50']:.3f} / {delay['p99']:.3f} s",
        "requests in a step": f"{found['requests_in_a_step']:.1f}",
        "throughput": f"{found['throughput']['requests_per_second']:.2f} requests, "
        f"{found['throughput']['ids_per_second']:,.0f} ids a second of virtual time",
        "virtual time, steps": f"{found['virtual_seconds']:,.0f} s, {found['steps']:,}",
        "an allocator's operation by blocks of the pool": _growth(found["allocator"]["microseconds_per_operation"]),
        "largest pool by smallest": f"{found['allocator']['largest_by_smallest'] or 0:.2f} times the cost",
        "wall time, processor time, peak memory": f"{found['wall_seconds']:.0f} s, {found['processor_seconds']:.0f} s, "
        f"{found['peak_bytes'] / 2**20:.0f} MiB",
    }.items():
        result.add_row(name, value)
    return [what, space, result]


def _growth(by_size: Mapping[str, float]) -> str:
    return ", ".join(f"{int(size):,}: {cost:.2f} µs" for size, cost in by_size.items())


def draw(file: Path, found: Mapping[str, Any], counts: Counts, shown: Sequence[Table]) -> None:
    """Write a picture, or for a name that ends in .html a page with the tables and the picture."""
    figure = _figure(found, counts)
    if file.suffix.lower() not in (".html", ".htm"):
        figure.savefig(file, dpi=130)
        return
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    text = io.StringIO()
    console = Console(file=text, width=140, no_color=True)
    for table in shown:
        console.print(table)
    svg = picture.getvalue()
    file.write_text(
        "<!doctype html><meta charset='utf-8'><title>inferspec simulate</title>"
        f"<h1>inferspec simulate</h1>{svg[svg.index('<svg') :]}<pre>{html.escape(text.getvalue())}</pre>\n",
        encoding="utf-8",
    )


def _figure(found: Mapping[str, Any], counts: Counts) -> Any:
    from matplotlib.figure import Figure

    settings = found["settings"]
    figure = Figure(figsize=(12, 7.5), layout="constrained")
    figure.suptitle(
        f"{settings['requests']:,} simulated requests, lengths of {settings['trace']}, {settings['rate']:g} a second: "
        f"{found['leaked_blocks']} blocks leaked, {found['requests']['never_ended']} requests lost"
    )
    memory, over, wait, cost = figure.subplots(2, 2).flat
    _draw_memory(memory, found)
    _draw_moments(over, counts)
    # A millisecond stands for nothing: the axis is logarithmic.
    delays = sorted(max(delay, 0.001) for delay in counts.delays)
    if delays:
        every = max(1, len(delays) // 2000)
        wait.plot(delays[::every], [k / len(delays) for k in range(0, len(delays), every)])
        wait.set_xscale("log")
    wait.set(title="queueing delay", xlabel="seconds of virtual time", ylabel="share of requests", ylim=(0, 1))
    wait.grid(alpha=0.3)
    costs = found["allocator"]["microseconds_per_operation"]
    cost.plot([int(size) for size in costs], list(costs.values()), "o-")
    cost.set(title="cost of an allocator's operation", xlabel="blocks of the pool", ylabel="µs", xscale="log")
    cost.set_ylim(0, 2 * max(costs.values(), default=1.0))
    cost.grid(alpha=0.3)
    return figure


def _draw_memory(axes: Any, found: Mapping[str, Any]) -> None:
    used = found["memory"]["used"]
    rows = range(len(WAYS))
    axes.barh(rows, [100 * used[way] for way in WAYS], color=["C0", "C7", "C7", "C7"], label="simulated")
    axes.plot([100 * PAPER[way] for way in WAYS], rows, "kD", label="Kwon et al. 2023, figure 2")
    for row, way in zip(rows, WAYS, strict=True):
        axes.annotate(
            f"{used[way]:.1%}", (100 * max(used[way], PAPER[way]), row), (8, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(rows, [name.replace(", ", ",\n") for name in WAYS.values()])
    axes.invert_yaxis()
    axes.set(title="memory taken that holds tokens", xlabel="%", xlim=(0, 115))
    axes.legend(loc="lower right")


def _draw_moments(axes: Any, counts: Counts) -> None:
    if counts.moments:
        seconds, running, waiting, share = zip(*counts.moments, strict=True)
        hours = [second / 3600 for second in seconds]
        axes.plot(hours, running, linewidth=0.6, label="requests in the step")
        axes.plot(hours, waiting, linewidth=0.6, label="requests that wait")
        blocks = axes.twinx()
        blocks.plot(hours, [100 * part for part in share], color="C2", linewidth=0.4, alpha=0.5)
        axes.plot([], [], color="C2", label="blocks in use")
        blocks.set(ylabel="% of blocks in use", ylim=(0, 105))
        axes.legend(loc="center right")
    axes.locator_params(axis="x", nbins=6)
    axes.set(title="over time", xlabel="hours of virtual time", ylabel="requests")
