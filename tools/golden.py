"""The writer of goldens: computes each with float64 PyTorch and with the spec's oracle, and stores what both agree on.

Neither an implementation nor the suites are imported here: what a golden says can come from the two oracles alone.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from inferspec.golden import MANIFEST, ROOT, SUFFIX, Golden, GoldenError, cases, manifest, read, serialised
from inferspec.spec import contract as contract_of
from inferspec.spec.contract import Answers
from inferspec.spec.numerics import Precision, f64, is_float
from inferspec.tools import recipes
from inferspec.tools.recipes import Case

COMMAND = "inferspec golden regen"

GOOD, DIFFERENT, UNABLE = 0, 1, 2


class _Unable(Exception):
    """Nothing can be computed; the message says why."""


@dataclass
class _Made:
    """A golden as the oracles have it now. refusal: why it must not be written, if so."""

    golden: Golden
    entry: dict[str, Any]
    budget: Mapping[str, np.ndarray]
    refusal: str = ""


@dataclass(frozen=True)
class _Row:
    """A line of the diff table."""

    golden: str
    what: str
    apart: str = ""
    budgets: str = ""
    libraries: str = ""


def regen(only: Sequence[str] = (), console: Console | None = None, *, root: Path = ROOT) -> int:
    """Compute the goldens of `only` (components, or component/case; empty for all) anew and write them.

    All or nothing: when the oracles disagree on any, nothing is written. Returns 0 when all were written, 1 when one
    was refused, 2 when nothing could be computed.
    """
    console = console or Console()
    try:
        old = _recorded(root)
        made = _make(only, old, root, console)
    except _Unable as problem:
        console.print(str(problem), style="red", markup=False)
        return UNABLE
    rows = _diff(made, old, only, root)
    _show(rows, len(made), console)
    if refused := [one for one in made.values() if one.refusal]:
        for one in refused:
            console.print(f"{one.golden.id} refused: {one.refusal}", style="red", markup=False, soft_wrap=True)
        console.print(f"{len(refused)} of {len(made)} refused: nothing was written")
        return DIFFERENT
    kept = {id: entry for id, entry in old.items() if not _asked(id, only)}
    gone = [id for id in _files(root) if _asked(id, only) and id not in made]
    _write(root, kept, made, gone)
    console.print(f"{len(made)} goldens written, {len(rows)} of them changed, new or gone")
    return GOOD


def check(only: Sequence[str] = (), console: Console | None = None, *, root: Path = ROOT) -> int:
    """Compute the goldens of `only` anew and compare them with the stored ones; write nothing.

    A value that moved by no more than two oracles may differ has not changed: other processors round otherwise.
    Returns 0 when nothing differs, 1 when something does, 2 when nothing could be computed.
    """
    console = console or Console()
    problems = _untrusted(only, root)
    for problem in problems:
        console.print(problem, style="red", markup=False, soft_wrap=True)
    try:
        old = _recorded(root)
        made = _make(only, old, root, console)
    except _Unable as problem:
        console.print(str(problem), style="red", markup=False)
        return UNABLE
    rows = _diff(made, old, only, root)
    _show(rows, len(made), console)
    for one in made.values():
        if one.refusal:
            problems.append(f"{one.golden.id}: {one.refusal}")
            console.print(problems[-1], style="red", markup=False, soft_wrap=True)
    if stale := _stale_torch(made, old):
        console.print(stale, style="red", markup=False, soft_wrap=True)
    failed = bool(problems or stale or any(row.what != "same value" for row in rows))
    if failed:
        console.print(f"the goldens differ; if that is meant, run `{COMMAND}`, read the diff and commit it")
    else:
        console.print(f"{len(made)} goldens are what both oracles say")
    return DIFFERENT if failed else GOOD


def load_recipes() -> dict[str, Case]:
    """Return golden id -> recipe; _Unable without PyTorch."""
    try:
        import torch
    except ImportError as error:
        raise _Unable("goldens need PyTorch: pip install torch (or inferspec[oracle])") from error
    torch.set_num_threads(1)
    found: dict[str, Case] = {}
    for component in sorted(module.name for module in iter_modules(recipes.__path__)):
        for case in import_module(f"{recipes.__name__}.{component}").CASES:
            if found.setdefault(f"{component}/{case.name}", case) is not case:
                raise _Unable(f"two recipes are named {component}/{case.name}")
    return found


def _asked(id: str, only: Sequence[str]) -> bool:
    return not only or id in only or id.split("/")[0] in only


def _recorded(root: Path) -> dict[str, dict[str, Any]]:
    """The manifest as it stands; nothing when it is missing or spoilt, so that regen can replace it."""
    try:
        return manifest(root)
    except GoldenError:
        return {}


def _untrusted(only: Sequence[str], root: Path) -> list[str]:
    """What the loader refuses, one message for each component, and files in folders that no component has."""
    try:
        entries = manifest(root)
    except GoldenError as error:
        return [str(error)]
    problems = []
    for component in sorted({id.split("/")[0] for id in [*entries, *_files(root)] if _asked(id, only)}):
        try:
            cases(component, root)
        except (GoldenError, KeyError) as error:
            problems.append(str(error))
    return problems


def _files(root: Path) -> list[str]:
    return sorted(f"{path.parent.name}/{path.stem}" for path in root.glob(f"*/*{SUFFIX}"))


def _make(only: Sequence[str], old: Mapping[str, Any], root: Path, console: Console) -> dict[str, _Made]:
    found = load_recipes()
    known = {*found, *old, *_files(root)}
    if unknown := [name for name in only if not any(_asked(id, [name]) for id in known)]:
        raise _Unable(
            f"no golden or component {unknown[0]!r}; components: {', '.join(sorted({i.split('/')[0] for i in known}))}"
        )
    chosen = [id for id in found if _asked(id, only)]
    for name in sorted({name for id in chosen for name in found[id].libraries}):
        if find_spec(name) is None:
            raise _Unable(f"some of these goldens need {name}: pip install {name} (or inferspec[oracle])")
    return {
        id: _made(id, found[id], old.get(id), root)
        for id in track(chosen, "two oracles compute", console=console, transient=True, disable=not console.is_terminal)
    }


def _made(id: str, case: Case, entry: Mapping[str, Any] | None, root: Path) -> _Made:
    arguments = case.arguments()
    answers = _spec_answers(id, case, arguments)
    golden = Golden(
        component=id.split("/")[0],
        name=case.name,
        requirement=case.requirement.id,
        operation=case.requirement.name,
        recipe=case.compute.__name__,
        seed=case.seed,
        condition=case.condition,
        features=dict(case.features),
        arguments=arguments,
        expected=_torch_answer(case.compute, arguments),
    )
    refusal = _refusal(golden, answers)
    golden = _settled(golden, answers, entry, root)
    return _Made(golden, _entry(golden, case.libraries), {part: one.budget for part, one in answers.items()}, refusal)


def _spec_answers(id: str, case: Case, arguments: Mapping[str, Any]) -> Answers:
    """The spec's answer by part; a single one has the name ""."""
    contract = contract_of(id.split("/")[0])
    operation = contract.operation(case.requirement.name)()
    bound = operation.bind(arguments)
    operation.guard(bound)
    answer = operation.evaluate(bound, Precision.FLOAT32)
    return answer if isinstance(answer, Mapping) else {"": answer}


def _torch_answer(compute: Callable[..., Any], arguments: Mapping[str, Any]) -> np.ndarray | dict[str, np.ndarray]:
    import torch

    def tensor(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: tensor(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(tensor, value))
        if not isinstance(value, np.ndarray):
            return value
        if value.dtype == bool:
            return torch.from_numpy(value.copy())
        return torch.from_numpy(f64(value) if is_float(value.dtype) else value.astype(np.int64))

    with torch.no_grad():
        value = compute(**{name: tensor(value) for name, value in arguments.items()})

    def array(x: Any) -> np.ndarray:
        return np.array(torch.as_tensor(x).double().numpy(), order="C")

    return {part: array(x) for part, x in value.items()} if isinstance(value, Mapping) else array(value)


def _refusal(golden: Golden, answers: Answers) -> str:
    """Why the golden must not be written; nothing when all is well."""
    if beyond := golden.beyond(contract_of(golden.component).envelope):
        return f"{beyond[0]} is outside the contract's envelope"
    if golden.answers.keys() != answers.keys():
        return f"the oracles disagree: PyTorch gives {', '.join(golden.answers)}, the spec {', '.join(answers)}"
    for part, expected in golden.answers.items():
        about, answer = f"{part}: " if part else "", answers[part]
        if expected.shape != answer.value.shape:
            return f"{about}the oracles disagree: PyTorch gives {expected.shape}, the spec {answer.value.shape}"
        if not (np.isfinite(expected) | (expected == answer.value)).all():
            return f"{about}PyTorch gives a number that is not finite"
    values, budgets = _split(answers)
    if not golden.equals(values, budgets):
        part, apart, shares = _worst(golden.answers, values, budgets)
        about = f"{part}: " if part else ""
        return f"{about}the oracles disagree: float64 PyTorch and the spec are {apart} apart, {shares} budgets"
    return ""


def _split(answers: Answers) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Values and budgets by part."""
    return {part: one.value for part, one in answers.items()}, {part: one.budget for part, one in answers.items()}


def _settled(golden: Golden, answers: Answers, entry: Mapping[str, Any] | None, root: Path) -> Golden:
    """The golden with the stored answer wherever both oracles still confirm it, so that another processor's
    roundings do not rewrite every file."""
    if entry is None:
        return golden
    try:
        stored = read(root / f"{golden.id}{SUFFIX}")
    except GoldenError:
        return golden
    recorded = (stored.inputs_digest(), stored.output_digest()) == (entry.get("inputs"), entry.get("output"))
    same = recorded and stored.inputs_digest() == golden.inputs_digest()
    values, budgets = _split(answers)
    if same and all(stored.equals(value, budgets) for value in (golden.answers, values)):
        return replace(golden, expected=stored.expected)
    return golden


def _entry(golden: Golden, libraries: Sequence[str]) -> dict[str, Any]:
    import torch

    return {
        "component": golden.component,
        "operation": golden.operation,
        "requirement": golden.requirement,
        "recipe": golden.recipe,
        "seed": golden.seed,
        "inputs": golden.inputs_digest(),
        "output": golden.output_digest(),
        # Without the local part: it names a build (+cpu), and every build is to give the same manifest.
        "oracles": {"torch": torch.__version__.split("+")[0], "spec": contract_of(golden.component).version},
        "libraries": {"numpy": np.__version__, **{name: version(name) for name in libraries}},
        "command": COMMAND,
    }


def _diff(made: Mapping[str, _Made], old: Mapping[str, Any], only: Sequence[str], root: Path) -> list[_Row]:
    rows = [row for id, one in made.items() if (row := _compared(one, old.get(id), root / f"{id}{SUFFIX}"))]
    gone = sorted(id for id in {*old, *_files(root)} if _asked(id, only) and id not in made)
    return rows + [_Row(id, "gone") for id in gone]


def _compared(one: _Made, entry: Mapping[str, Any] | None, path: Path) -> _Row | None:
    id = one.golden.id
    if entry is None or not path.exists():
        return _Row(id, "new")
    libraries = ", ".join(_moved_versions(entry, one.entry))
    try:
        stored = read(path)
    except GoldenError:
        return _Row(id, "unreadable", libraries=libraries)
    changes = ["inputs changed"] if one.golden.inputs_digest() != stored.inputs_digest() else []
    apart = budgets = ""
    if one.golden.output_digest() != stored.output_digest():
        changes.append("output moved")
        _, apart, budgets = _worst(one.golden.answers, stored.answers, one.budget)
    rest = [key for key in one.entry if key not in ("oracles", "libraries") and entry.get(key) != one.entry[key]]
    if rest and not changes:
        changes.append(f"manifest: {', '.join(rest)}")
    oracles = entry.get("oracles") != one.entry["oracles"]
    if not changes and not libraries:
        return None
    what = ", ".join(changes) or ("oracle changed" if oracles else "same value")
    return _Row(id, what, apart, budgets, libraries)


def _moved_versions(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[str]:
    for group in ("oracles", "libraries"):
        for name, now in after[group].items():
            known = before.get(group)
            recorded = known.get(name) if isinstance(known, dict) else None
            if recorded != now:
                yield f"{name} {recorded} → {now}"


def _worst(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], budgets: Mapping[str, np.ndarray]
) -> tuple[str, str, str]:
    """The part with the largest absolute difference; that difference, in numbers and in budgets."""
    if first.keys() != second.keys() or first.keys() != budgets.keys():
        return "", f"parts {', '.join(second)} → {', '.join(first)}", ""
    part = max(first, key=lambda part: _apart(first[part], second[part]))
    return part, *_distance(first[part], second[part], budgets[part])


def _apart(first: np.ndarray, second: np.ndarray) -> float:
    """The largest absolute difference, infinite between arrays of different shapes."""
    if first.shape != second.shape:
        return np.inf
    with np.errstate(all="ignore"):
        return float(np.where(first == second, 0.0, np.abs(first - second)).max(initial=0.0))


def _distance(first: np.ndarray, second: np.ndarray, budget: np.ndarray) -> tuple[str, str]:
    """Largest absolute difference, in numbers and in budgets."""
    if first.shape != second.shape or first.shape != budget.shape:
        return f"shape {list(second.shape)} → {list(first.shape)}", ""
    with np.errstate(all="ignore"):
        apart = np.where(first == second, 0.0, np.abs(first - second))
        shares = np.where(apart == 0, 0.0, apart / budget)
    return f"{apart.max(initial=0.0):.3g}", f"{shares.max(initial=0.0):.3g}"


def _stale_torch(made: Mapping[str, _Made], old: Mapping[str, Any]) -> str:
    pairs = {
        (recorded, one.entry["oracles"]["torch"])
        for id, one in made.items()
        if isinstance(oracles := old.get(id, {}).get("oracles"), dict)
        and (recorded := oracles.get("torch")) != one.entry["oracles"]["torch"]
    }
    if not pairs:
        return ""
    recorded, installed = sorted(pairs, key=str)[0]
    return (
        f"{MANIFEST} was agreed with torch {recorded}, torch {installed} is installed: "
        f"run `{COMMAND}`, read the diff and commit it, or pip install torch=={recorded}"
    )


def _show(rows: Sequence[_Row], total: int, console: Console) -> None:
    if not rows:
        console.print(f"{total} goldens, none differs")
        return
    table = Table("golden", "what", "max |moved|", "in budgets", "library")
    for row in rows:
        table.add_row(row.golden, row.what, row.apart, row.budgets, row.libraries)
    console.print(table)


def _write(root: Path, kept: Mapping[str, Any], made: Mapping[str, _Made], gone: Sequence[str]) -> None:
    """Write everything beside the root first, then move it in, the manifest last: an interrupted move leaves hashes
    that do not fit, which the loader refuses."""
    entries = {**kept, **{id: one.entry for id, one in made.items()}}
    text = json.dumps({"goldens": entries}, indent=2, sort_keys=True) + "\n"
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=".golden-") as beside:
        for id, one in made.items():
            staged = Path(beside, f"{id}{SUFFIX}")
            staged.parent.mkdir(exist_ok=True)
            staged.write_bytes(serialised(one.golden))
        Path(beside, MANIFEST).write_text(text, encoding="utf-8")
        for id in made:
            (root / id).parent.mkdir(exist_ok=True)
            os.replace(Path(beside, f"{id}{SUFFIX}"), root / f"{id}{SUFFIX}")
        for id in gone:
            (root / f"{id}{SUFFIX}").unlink()
        os.replace(Path(beside, MANIFEST), root / MANIFEST)
