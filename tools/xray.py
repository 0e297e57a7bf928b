"""``inferspec explain --xray``: what an oracle computes on a small example, step by step.

The steps are the operation's own methods. They are watched while they run, with the interpreter's profiling hook, so
that nothing in a contract knows of it, and an oracle that another one uses is seen as well.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs import plain_call
from inferspec.spec.contract import Answer, Arguments, Contract, Operation
from inferspec.spec.numerics import Precision, is_float
from inferspec.tools.explain import Page, place, prose, spelling
from inferspec.tools.xray_examples import EXAMPLES

UNSEEN = frozenset({"bind", "respond", "finish", "result_dtype", "part_dtype", "evaluate", "told"})
"""Methods that every operation has, and that are no steps of its formula."""

OF_BUDGET = re.compile("budget|error|magnitude|rescaling")
"""Names of steps that bound an error: the value needs none of them."""

ALSO_KNOWN = frozenset({"dtype", "precision", "input_error"})
"""Arguments that are not worth a word."""

LARGEST = 64
"""Numbers of an array beyond which only its corners are shown."""

TINY = 1e-3
"""An array of no larger numbers is shown in powers of ten."""

MANY = 16
"""Arrays of a call beyond which only their shapes are shown."""

ALIKE = 4
"""How many steps of one name are shown in full under the same parent; the others are counted."""


@dataclass
class Step:
    """One call of a method: what it took, what it gave, and the steps inside it."""

    name: str
    text: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    inner: list[Step] = field(default_factory=list)

    @functools.cached_property
    def content(self) -> str:
        """What tells it from another call of the same step."""
        return f"{self.name} {_content(self.given)} {_content(self.result)}"


def show(page: Page, contract: Contract, operations: Sequence[type[Operation]]) -> None:
    """Each of these operations of a component on its example."""
    for operation in operations:
        call = example(operation)
        page.heading(spelling(operation), place(operation))
        page.paragraph(prose(operation))
        page.console.print()
        page.paragraph(str(call))
        given = call.leaves()
        for name, array in given.items():
            _shown(page, name, array if len(given) <= MANY else _kind(array), 4)
        steps, result = traced(operation, call)
        for number, step in enumerate(_told(steps), 1):
            _step(page, step, f"{number}", 2)
        page.console.print()
        _result(page, result)
        _budget(page, operation, call)


def example(operation: type[Operation]) -> Call:
    """A small call of an operation: one made for reading, or the plainest."""
    name = operation.signature.operation
    return EXAMPLES[name] if name in EXAMPLES else plain_call(name)


def traced(operation: type[Operation], call: Call) -> tuple[list[Step], Any]:
    """Make the call; return its steps, those of other operations that it uses among them, and what it gave."""
    oracle = operation()
    given = oracle.bind(call.arguments)
    oracle.guard(given)
    root = Step("")
    watch = _Watch(root)
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = oracle.respond(given)
    finally:
        sys.setprofile(before)
    return root.inner, result


class _Watch:
    """Keeps a tree of the calls of operations' methods; the hook of `sys.setprofile`."""

    def __init__(self, root: Step) -> None:
        self._open: list[tuple[FrameType | None, Step]] = [(None, root)]

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        if event == "call" and (method := _method(frame)):
            names = inspect.getargvalues(frame)
            given = {name: names.locals[name] for name in names.args[1:]}
            step = Step(frame.f_code.co_name, _first_line(method), {k: _copied(v) for k, v in given.items()})
            self._open[-1][1].inner.append(step)
            self._open.append((frame, step))
        elif event == "return" and frame is self._open[-1][0]:
            self._open.pop()[1].result = _copied(result)


def _method(frame: FrameType) -> Any:
    """The step of an operation that a frame runs, if it runs one."""
    code, name = frame.f_code, frame.f_code.co_name
    if name.startswith(("_", "<", "guard", "check")) or name in UNSEEN or OF_BUDGET.search(name):
        return None
    if code.co_flags & inspect.CO_GENERATOR:
        return None
    owner = frame.f_locals.get("self") if code.co_varnames[:1] == ("self",) else None
    method = getattr(type(owner), name, None) if isinstance(owner, Operation) else None
    return method if method is not None and _code(method) is code else None


def _code(method: Any) -> CodeType | None:
    return getattr(inspect.unwrap(method), "__code__", None)


def _first_line(method: Any) -> str:
    return prose(method).split("\n\n")[0].replace("\n", " ")


def _copied(value: Any) -> Any:
    """A value as it is now: later steps may write into an array."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple | list) and len(value) <= LARGEST:
        return tuple(_copied(one) for one in value)
    return value


def _content(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hash(value.tobytes())}"
    if isinstance(value, dict | Arguments):
        named = value if isinstance(value, dict) else vars(value)
        return ",".join(f"{name}:{_content(one)}" for name, one in named.items())
    if isinstance(value, tuple | list):
        return ",".join(_content(one) for one in value)
    return f"{type(value).__name__}{value if isinstance(value, int | float | str | bool) else ''}"


def _told(steps: list[Step]) -> list[Step]:
    """The steps without those that only say once more, for the budget say, what was said, and without too many of a
    kind: those are counted in the name of the last."""
    return _sifted(steps, set())


def _sifted(steps: list[Step], known: set[str]) -> list[Step]:
    kept: list[Step] = []
    for step in steps:
        if step.content in known:
            continue
        known.add(step.content)
        kept.append(replace(step, inner=_sifted(step.inner, known)))
    found: list[Step] = []
    for step in kept:
        alike = sum(one.name == step.name for one in found)
        if alike < ALIKE:
            found.append(step)
        elif alike == ALIKE:
            more = sum(one.name == step.name for one in kept) - ALIKE
            found.append(Step(step.name, f"{more} more of these", {}, _Left()))
    return found


class _Left:
    """In the place of a result that is left out."""


def _step(page: Page, step: Step, number: str, indent: int) -> None:
    if isinstance(step.result, _Left):
        page.line(f"… {step.name}: {step.text}", indent, "dim")
        return
    given = ", ".join(f"{name} {_kind(value)}" for name, value in step.given.items() if _telling(name, value))
    page.line(f"{number}. {step.name}" + (f" of {given}" if given else ""), indent, "bold")
    if step.text:
        page.paragraph(step.text, indent + 3, "italic")
    for inside, one in enumerate(step.inner, 1):
        _step(page, one, f"{number}.{inside}", indent + 3)
    result = _content(step.result)
    same = next((name for name, value in step.given.items() if _telling(name, value) and _content(value) == result), "")
    if same and not step.inner:
        page.line(f"→ {same} as it is", indent + 3)
    elif not (step.inner and _content(step.inner[-1].result) == result):
        _shown(page, "→", step.result, indent + 3)


def _telling(name: str, value: Any) -> bool:
    """Whether an argument is worth a word: the call's own arguments, which every step gets, are not."""
    if isinstance(value, tuple):
        return all(_telling(name, one) for one in value)
    return name not in ALSO_KNOWN and (isinstance(value, np.ndarray) or (value is not None and _is_plain(value)))


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_kind, value))}]"
    return f"{value:.5g}" if isinstance(value, float) else repr(value)


def _shown(page: Page, name: str, value: Any, indent: int) -> None:
    """A value on a line of its own, or its corners; several below one another."""
    if isinstance(value, Answer):
        _shown(page, name, value.value, indent)
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for key, one in value.items():
            _shown(page, f"{name} {key}:", one, indent)
    elif isinstance(value, tuple | list) and not _is_plain(value):
        for one in value:
            _shown(page, name, one, indent)
    elif isinstance(value, np.ndarray):
        text = numbers(value)
        lead = f"{name} {_kind(value)}"
        page.line(f"{lead} {text}" if "\n" not in text else f"{lead}\n{_shifted(text, indent + 2)}", indent)
    elif isinstance(value, float):
        page.line(f"{name} {value:.5g}", indent)
    elif value is not None and _is_plain(value):
        page.line(f"{name} {value!r}", indent)


def _is_plain(value: Any) -> bool:
    """Whether a value can be written down as it is."""
    if isinstance(value, tuple | list | set | frozenset):
        return all(_is_plain(one) for one in value)
    return value is None or isinstance(value, bool | int | float | str | bytes)


def numbers(array: np.ndarray) -> str:
    """An array in digits, rounded; of a large one the corners. Bounds, which are tiny, in powers of ten."""
    values = array.astype(np.float64) if is_float(array.dtype) else array
    tiny = is_float(array.dtype) and 0 < np.nanmax(np.abs(values), initial=0.0) < TINY
    form = {"formatter": {"float": "{:.1e}".format}} if tiny else {"precision": 4, "suppress_small": True}
    text = np.array2string(values, threshold=LARGEST, edgeitems=2, max_line_width=100, **form)
    return "\n".join(line for line in text.splitlines() if line.strip())


def _shifted(text: str, indent: int) -> str:
    return "\n".join(" " * indent + line for line in text.splitlines())


def _result(page: Page, result: Any) -> None:
    page.line("what a subject returns", 2, "bold")
    _shown(page, "=", result, 4)


def _budget(page: Page, operation: type[Operation], call: Call) -> None:
    oracle = operation()
    answer = oracle.evaluate(oracle.bind(call.arguments), Precision.FLOAT32)
    budgets = [one.budget for one in _answers(answer)]
    largest = max((float(np.nanmax(b)) for b in budgets if b.size), default=0.0)
    page.line("how far it may be off (class float32)", 2, "bold")
    if largest and isinstance(answer, Answer):
        _shown(page, "±", answer.budget, 4)
    else:
        page.line(f"± {largest:.3g} at most" if largest else "± 0: it is exact", 4)


def _answers(answer: Any) -> Iterator[Answer]:
    if isinstance(answer, Answer):
        yield answer
    else:
        yield from answer.values()
