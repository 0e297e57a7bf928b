"""``inferspec kernels run-on-device``: what only a Mac can show, as evidence in a file.

Each kernel of the kit runs natively and in the simulator on the same inputs; both are held against the contract's oracle and budget.
The file says which device and versions it was, which sources ran (by hash), and how far apart the two were.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import platform
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from inferspec import __version__, compiler
from inferspec.tools import arguments, metalsim
from inferspec.tools.kernels.cases import Arguments, Case, cases
from inferspec.tools.kernels.job import Unusable

SCHEMA = 1


@dataclass(frozen=True)
class Outcome:
    """One call, run both ways.

    native, simulated: the worst error as a share of the contract's budget. apart: the largest difference between the two in
    budgets; they may be two of them apart. milliseconds: of the native call, once compiled. trouble: why there are no numbers.
    """

    operation: str
    case: str
    dtype: str
    native: float = float("nan")
    simulated: float = float("nan")
    apart: float = float("nan")
    milliseconds: float = float("nan")
    trouble: str = ""

    @property
    def good(self) -> bool:
        """Whether both are within the budget."""
        return not self.trouble and self.native <= 1 and self.simulated <= 1


def add_parser(actions: Any) -> None:
    """Add the action to the parser of ``inferspec kernels``."""
    parser = actions.add_parser(
        "run-on-device",
        help="on a Mac: run the kit's kernels natively and in the simulator, compare, and write evidence",
    )
    parser.add_argument(
        "--json",
        type=arguments.written,
        default=Path("device.json"),
        metavar="FILE",
        help="the evidence (default: %(default)s)",
    )
    parser.set_defaults(command=_command)


def _command(options: argparse.Namespace) -> int:
    from inferspec.tools.kernels.commands import console, unusable

    out = console()
    try:
        outcomes = run(out)
    except Unusable as error:
        return unusable(error, out)
    options.json.write_text(json.dumps(evidence(outcomes), indent=1) + "\n", encoding="utf-8")
    out.print(_table(outcomes))
    bad = [outcome for outcome in outcomes if not outcome.good]
    out.print(
        f"{len(outcomes) - len(bad)} of {len(outcomes)} calls agree; evidence in {options.json}",
        style="red" if bad else "green",
        highlight=False,
    )
    return 1 if bad else 0


def run(out: Console) -> list[Outcome]:
    """Every case in every dtype that the GPU has.

    Raises ``Unusable`` without Metal, and without the compiler that the simulator takes.
    """
    if not native():
        raise Unusable(
            "run-on-device runs Metal kernels natively: it takes a Mac, with the GPU as MLX's default device"
        )
    try:
        compiler.compiler()
    except metalsim.NoCompiler as error:
        raise Unusable(str(error)) from None
    from inferspec.impl.kernels.metal import dtypes

    names = [str(dtype).rpartition(".")[2] for dtype in dtypes()]
    outcomes = []
    with out.status("running") as status:
        for case in cases():
            for dtype in names:
                status.update(f"{case.operation} {case.name} {dtype}")
                outcomes.append(compare(case, dtype))
    return outcomes


def native() -> bool:
    """Whether kernels run on a Metal device here."""
    from inferspec.impl.kernels import Availability, available

    return available() is Availability.NATIVE


def compare(case: Case, dtype: str) -> Outcome:
    """Run a case both ways. What it raises is its trouble."""
    from inferspec.spec.numerics import Precision

    operation, arguments = _operation(case.operation)(), case.arguments(dtype)
    answer = operation.evaluate(operation.bind(arguments), Precision.FLOAT32)
    budget = np.maximum(np.broadcast_to(answer.budget, np.shape(answer.value)), np.finfo(np.float64).tiny)
    try:
        on_device = result(operation, arguments, simulated=False)
        began = time.perf_counter()
        result(operation, arguments, simulated=False)
        milliseconds = 1e3 * (time.perf_counter() - began)
        in_simulator = result(operation, arguments, simulated=True)
    except Exception as error:
        return Outcome(case.operation, case.name, dtype, trouble=f"{type(error).__name__}: {error}")
    native_share, simulated_share, apart = (
        _largest(np.abs(one - other) / budget)
        for one, other in ((on_device, answer.value), (in_simulator, answer.value), (on_device, in_simulator))
    )
    return Outcome(case.operation, case.name, dtype, native_share, simulated_share, apart, milliseconds)


def result(operation: Any, arguments: Arguments, *, simulated: bool) -> np.ndarray:
    """What the kit's kernels answer, natively or in the simulator, as float64."""
    import mlx.core as mx

    from inferspec.impl import kernels

    where: AbstractContextManager[None] = metalsim.installed() if simulated else nullcontext()
    with where:
        signature = operation.signature
        given = {name: _to_mlx(value) for name, value in arguments.items()}
        function = getattr(kernels, signature.name)
        if signature.init is not None:
            function = function(**{name: given.pop(name) for name in signature.init if name in given})
        return np.array(function(**given).astype(mx.float32)).astype(np.float64)


def evidence(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """What the file says."""
    import mlx.core as mx

    from inferspec.impl.kernels.metal import FOLDER

    return {
        "evidence": "inferspec kernels run-on-device",
        "schema": SCHEMA,
        "inferspec": __version__,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": {key: value for key, value in mx.device_info().items() if isinstance(value, str | int | float)},
        "system": platform.platform(),
        "mlx": version("mlx"),
        "sources": {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(FOLDER.glob("*.metal"))
        },
        "agrees": all(outcome.good for outcome in outcomes),
        "calls": [{key: _plain(value) for key, value in asdict(outcome).items()} for outcome in outcomes],
    }


def _operation(name: str) -> Any:
    from inferspec.spec import located

    return located(name)[1]


def _to_mlx(value: Any) -> Any:
    import mlx.core as mx

    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.name == "bfloat16":
        return mx.array(value.view(np.uint16)).view(mx.bfloat16)
    return mx.array(value)


def _largest(shares: np.ndarray) -> float:
    """NaN, which any comparison fails, if there is one."""
    return float(np.max(shares, initial=0.0))


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _table(outcomes: Sequence[Outcome]) -> Table:
    table = Table(
        "operation",
        "call",
        "dtype",
        "native",
        "simulated",
        "apart",
        "ms",
        "",
        caption="errors and difference in budgets",
    )
    for outcome in outcomes:
        numbers = (outcome.native, outcome.simulated, outcome.apart, outcome.milliseconds)
        verdict = outcome.trouble or ("" if outcome.good else "[red]differs")
        table.add_row(outcome.operation, outcome.case, outcome.dtype, *(f"{number:.3g}" for number in numbers), verdict)
    return table
