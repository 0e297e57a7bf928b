"""The ways to make a target launch its kernels: a `.metal` file's launches, a script, calls of functions, tests.

Everything here runs in a worker's process, with metalsim installed.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from inferspec.tools import metalsim
from inferspec.tools.kernels.job import Job, Unusable
from inferspec.tools.metalsim import launches

HOW_TO_LAUNCH = (
    '--shapes "x=float32[4,97] out=float32[4,97] threads=128 threadgroup=32", or a comment in the file:'
    " // launch: x=float32[4,97] …"
)

MOST_FAILURES = 5  # told of one by one


def drive(job: Job) -> dict[str, Any]:
    """Do what a job says, and say how it went: ``{"passed": 3, "failed": 1, "failures": ["test_a: …"], "trouble": "…"}``; those of
    tests or all of them are left out.

    Raises ``Unusable`` where the target cannot be run so.
    """
    match job.way:
        case "file":
            return _launch(Path(job.target), job.texts)
        case "script":
            return _script(Path(job.texts[0]))
        case "calls":
            return _call(_module(job.target), job.texts)
        case "tests":
            return _test([Path(text) for text in job.texts] or _tests_of(job.target))


def _launch(path: Path, lines: Sequence[str]) -> dict[str, Any]:
    if not path.is_file():
        raise Unusable(f"{path}: there is no such file")
    try:
        wanted = [launches.read(line) for line in lines] or launches.launches_in(path.read_text(encoding="utf-8"))
        if not wanted:
            raise Unusable(f"{path}: nothing says how it is launched; give {HOW_TO_LAUNCH}")
        for launch in wanted:
            launch.run(path)
    except (ValueError, TypeError, KeyError, OSError, metalsim.CompileError) as error:
        raise Unusable(f"{path}: {_message(error)}") from None
    return {}


def _script(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise Unusable(f"{path}: there is no such file")
    sys.path.insert(0, str(path.resolve().parent))
    sys.argv = [str(path)]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        return {"trouble": f"{path} ended with {end.code}"} if end.code else {}
    except Exception as error:
        return {"trouble": f"{path}: {type(error).__name__}: {error}"}
    return {}


def _module(target: str) -> Any:
    try:
        if not target.endswith(".py"):
            return importlib.import_module(target)
        path = Path(target)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        sys.path.insert(0, str(path.resolve().parent))
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except Exception as error:
        raise Unusable(f"{target} cannot be imported: {type(error).__name__}: {error}") from None


def _call(module: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Calls like ``softmax(x=float32[3,80], axis=-1)`` or ``RMSNorm(80, weight=float32[80])(x=float32[3,80])``."""
    for text in texts:
        name, calls = _read_call(text)
        if not hasattr(module, name):
            raise Unusable(f"--shapes {text}: {module.__name__} has no {name}")
        value = getattr(module, name)
        for positional, named in calls:
            try:
                value = value(*positional, **named)
            except Exception as error:
                return {"trouble": f"{text}: {type(error).__name__}: {error}"}
    return {}


def _read_call(text: str) -> tuple[str, list[tuple[list[Any], dict[str, Any]]]]:
    name, opening, rest = text.strip().partition("(")
    if not name.isidentifier() or not opening:
        raise Unusable(f'--shapes {text}: of a module it takes a call, "softmax(x=float32[3,80], axis=-1)"')
    calls = []
    rest = opening + rest
    while rest:
        inside, rest = _bracketed(text, rest)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for part in launches.split(inside, ","):
            key, equals, value = part.partition("=")
            if equals and key.strip().isidentifier():
                named[key.strip()] = _argument(text, key.strip(), value.strip())
            elif part:
                positional.append(_argument(text, f"argument {len(positional)}", part))
        calls.append((positional, named))
    return name, calls


def _bracketed(whole: str, text: str) -> tuple[str, str]:
    """What the bracket at the start of a text encloses, and what follows it."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            if index == 0:
                break
            return text[1:index], text[index + 1 :].strip()
    raise Unusable(f"--shapes {whole}: its brackets do not match")


def _argument(call: str, name: str, text: str) -> Any:
    try:
        found = launches.array(text)
        return ast.literal_eval(text) if found is None else _array(found, name)
    except (ValueError, SyntaxError):
        raise Unusable(
            f"--shapes {call}: {name} is {text}; it takes an array (float32[3,80]) or a Python literal"
        ) from None


def _array(text: launches.ArrayText, name: str) -> Any:
    import mlx.core as mx

    values = text.make(name)
    if text.dtype.name == "bfloat16":
        return mx.array(values.astype("float32")).astype(mx.bfloat16)
    return mx.array(values)


def _tests_of(target: str) -> list[Path]:
    """A module's own tests: those in its package, beside it, or in a `tests` folder near it."""
    if target.endswith(".py"):
        return [Path(target)]
    if Path(target).is_file():
        raise Unusable(f"{target} is no dotted module, Python file or .metal file")
    try:
        spec = importlib.util.find_spec(target)
    except ImportError as error:
        raise Unusable(f"{target} cannot be imported: {error}") from None
    if spec is None or spec.origin is None:
        raise Unusable(f"there is no module {target}")
    found = list(_places_of_tests(Path(spec.origin), bool(spec.submodule_search_locations)))
    if not found:
        raise Unusable(
            f'{target} has no tests beside it; give --tests PATH, --script FILE or --shapes "function(x=float32[3,80])"'
        )
    return found


def _places_of_tests(path: Path, package: bool) -> Iterator[Path]:
    folder = path.parent
    if package:
        if any(folder.rglob("test_*.py")) or any(folder.rglob("*_test.py")):
            yield folder
        elif (folder.parent / "tests").is_dir():
            yield folder.parent / "tests"
        return
    for place in (folder, folder / "tests", folder.parent / "tests"):
        for name in (f"test_{path.stem}.py", f"{path.stem}_test.py"):
            if (place / name).is_file():
                yield place / name


class _Counts:
    """A plugin of pytest's that counts."""

    def __init__(self) -> None:
        self.passed = self.failed = 0
        self.failures: list[str] = []
        self.trouble = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.passed += report.when == "call" and report.passed
        if report.failed:
            self.failed += 1
            crash = getattr(
                report.longrepr, "reprcrash", None
            )  # where and how it ended, as the traceback's last line says
            self.failures.append(f"{report.nodeid}: {_first_line(crash.message if crash else str(report.longrepr))}")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            lines = [line for line in str(report.longrepr).splitlines() if line.strip()]
            self.trouble = f"{report.nodeid}: {lines[-1].strip() if lines else 'cannot be collected'}"


def _test(paths: Sequence[Path]) -> dict[str, Any]:
    import pytest

    for path in paths:
        if not Path(str(path).partition("::")[0]).exists():
            raise Unusable(f"--tests {path}: there is no such file or folder")
    counts = _Counts()
    alone = ["-n0"] if importlib.util.find_spec("xdist") else []  # launches are told of in this process only
    sys.path.insert(0, "")
    code = pytest.main([*map(str, paths), "-q", "-p", "no:cacheprovider", *alone], plugins=[counts])
    trouble = counts.trouble
    if not trouble and code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        trouble = (
            "no test was collected" if code == pytest.ExitCode.NO_TESTS_COLLECTED else f"pytest ended with {int(code)}"
        )
    failures = counts.failures[:MOST_FAILURES]
    if more := len(counts.failures) - len(failures):
        failures.append(f"and {more} more")
    return {"passed": counts.passed, "failed": counts.failed, "failures": failures, "trouble": trouble}


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _message(error: Exception) -> str:
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
