"""What moved between two goldens of one model, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from inferspec.golden.models import ModelGolden, Prompt
from inferspec.spec.numerics import MODEL_LOGITS

SOURCES = ("revision", "weights", "config", "tokenizer", "processor")
"""Entries of golden.json that answers depend on, beside the libraries and the prompts."""


@dataclass(frozen=True)
class Row:
    """One prompt. ids, greedy: what became of them, in words; moved: the logits' largest change as a share of the
    largest logit, None where they cannot be compared."""

    prompt: str
    ids: str = "same"
    greedy: str = "same"
    moved: float | None = 0.0

    @property
    def changed(self) -> bool:
        """Whether this is more than two right runs may differ."""
        return (self.ids, self.greedy) != ("same", "same") or self.moved is None or self.moved > MODEL_LOGITS


def relative(got: np.ndarray, reference: np.ndarray) -> float:
    """Largest difference as a share of the reference's largest number; inf for another shape or a NaN."""
    if got.shape != reference.shape:
        return float("inf")
    with np.errstate(all="ignore"):
        apart = np.abs(got.astype(np.float64) - reference)
    worst = float(apart.max(initial=0.0) / np.abs(reference).max(initial=np.finfo(np.float32).tiny))
    return worst if np.isfinite(worst) else float("inf")


def compared(old: ModelGolden | None, new: ModelGolden) -> list[Row]:
    """One row for each prompt of either."""
    before = {prompt.name: prompt for prompt in old.prompts} if old else {}
    rows = [_row(before.get(prompt.name), prompt, old, new) for prompt in new.prompts]
    gone = [name for name in before if name not in {prompt.name for prompt in new.prompts}]
    return rows + [Row(name, "gone", "gone", None) for name in gone]


def _row(before: Prompt | None, after: Prompt, old: ModelGolden | None, new: ModelGolden) -> Row:
    if before is None or old is None:
        return Row(after.name, "new", "new", None)
    ids = "same" if before.ids == after.ids else _first_change(before.ids, after.ids)
    greedy = "same" if before.greedy == after.greedy else _first_change(before.greedy, after.greedy)
    if ids != "same" or not np.array_equal(old.columns, new.columns):
        return Row(after.name, ids, greedy, None)
    # Behind the first other token the two no longer read the same text.
    shared = len(after.ids) + sum(1 for _ in _common(before.greedy, after.greedy))
    shared = min(shared, len(before.columns), len(after.columns))
    moved = max(relative(after.last, before.last), relative(after.columns[:shared], before.columns[:shared]))
    return Row(after.name, ids, greedy, moved)


def _common(first: tuple[int, ...], second: tuple[int, ...]) -> list[int]:
    same = []
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        same.append(one)
    return same


def _first_change(before: tuple[int, ...], after: tuple[int, ...]) -> str:
    place = len(_common(before, after))
    one, other = (str(ids[place]) if place < len(ids) else "end" for ids in (before, after))
    return f"from token {place}: {one} → {other}"


def causes(
    old: Mapping[str, Any], new: Mapping[str, Any], old_golden: ModelGolden, new_golden: ModelGolden
) -> list[str]:
    """All recorded things that changed, in words: what can have moved an answer."""
    found = [
        f"{key} {_short(old.get(key))} → {_short(new.get(key))}" for key in SOURCES if old.get(key) != new.get(key)
    ]
    before, after = old.get("libraries", {}), new.get("libraries", {})
    found += [
        f"{name} {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    texts = {prompt.name: (prompt.text, prompt.chat) for prompt in old_golden.prompts}
    asked = [p.name for p in new_golden.prompts if p.name in texts and texts[p.name] != (p.text, p.chat)]
    found += [f"prompt {name} asks something else" for name in asked]
    if not np.array_equal(old_golden.columns, new_golden.columns):
        found.append("other columns are sampled")
    return found


def _short(value: Any) -> str:
    text = str(value)
    return text[:12] if len(text) in (40, 64) else text


def show(old: ModelGolden | None, new: ModelGolden, console: Console) -> list[Row]:
    """Print what moved and why; return the rows."""
    rows = compared(old, new)
    if old is None:
        console.print(f"{new.name}: {len(rows)} prompts, no goldens before")
        return rows
    why = causes(old.record, new.record, old, new)
    if not any(row.changed for row in rows):
        worst = max((row.moved or 0.0 for row in rows), default=0.0)
        console.print(f"{new.name}: {len(rows)} prompts, none moved (at most {worst:.1e} of the largest logit)")
    else:
        table = Table("prompt", "ids", "greedy text", "logits moved", title=new.name)
        for row in rows:
            moved = "" if row.moved is None else f"{row.moved:.2g}" + (" [red]!" if row.moved > MODEL_LOGITS else "")
            table.add_row(row.prompt, row.ids, row.greedy, moved)
        console.print(table)
    if why:
        console.print(f"changed since: {'; '.join(why)}", markup=False, soft_wrap=True)
    elif any(row.changed for row in rows):
        console.print(
            "nothing recorded changed (weights, tokenizer, libraries, prompts): an answer is not reproducible"
        )
    return rows
