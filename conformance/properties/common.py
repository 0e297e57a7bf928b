"""Properties that every component has, as sentences about one subject and one call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call, step_told
from inferspec.conformance.envelope import OutsideEnvelope
from inferspec.conformance.inputs.linear import resized
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.spec.numerics import f64


def refuses(subject: Trial, call: Call, **bad: Any) -> None:
    """A call with bad arguments raises; any error will do, an answer will not. bad: those that are bad, in the place of the
    call's own."""
    seen = subject.observe(call := call.having(**bad))
    if not seen.raised:
        shapes = [f"{part or 'an array'} of shape {list(x.shape)}" for part, x in seen.results.items()]
        raise Nonconformance(f"{told(bad)} is not refused: it returns {', '.join(shapes) or 'nothing'}", call)


def told(bad: Mapping[str, Any]) -> str:
    """Bad arguments in words."""
    said = ", ".join(f"{name}={value!r}" for name, value in bad.items()) or "bad input"
    nan = [name for name, value in bad.items() if isinstance(value, float) and math.isnan(value)]
    # The mistake that is made with it, whatever the argument.
    return f"{said} (NaN is not below any limit nor above it: `{nan[0]} < 0` does not see it)" if nan else said


def listed(ids: np.ndarray) -> list[int]:
    """Ids as a message shows them."""
    return [int(token) for token in ids]


def refuses_or_reads(subject: Trial, call: Call, *arguments: str, where: np.ndarray | None = None) -> None:
    """The call with some of its arrays in float32, where they hold the same numbers, is refused, or right: in the dtype of the
    others, or in float32. where: the elements that the oracle speaks of, all by default."""
    other = call.having(**{name: call.arguments[name].astype(np.float32) for name in arguments})
    seen = subject.observe(other)
    if not seen.raised and seen.value is not None:
        subject.compare(other, seen.value, subject.answer(call), where)


def is_right_if_taken(subject: Trial, call: Call) -> None:
    """A call that need not be taken is right, or refused."""
    if not subject.observe(call).raised:
        subject.agrees(call)


def refuses_step(subject: Trial, story: tuple[Call, int]) -> None:
    """A story's step of that number is refused, whatever comes after it."""
    call, bad = story
    short = call.having(steps=call.arguments["steps"][:bad])
    seen = subject.answered(short)
    if f"{bad} refused" not in seen.results:
        # Another step that was is why this one is not, as likely as not.
        why = f" ({seen.message})" if seen.message else ""
        raise Nonconformance(f"step {bad}, {step_told(short, bad)}, is not refused{why}", short)


def refuses_steps(subject: Trial, story: tuple[Call, Sequence[int]]) -> None:
    """A story's steps of those numbers are all refused."""
    call, bad = story
    seen = subject.answered(call).results
    if taken := [number for number in bad if f"{number} refused" not in seen]:
        short = call.having(steps=call.arguments["steps"][: taken[0]])
        raise Nonconformance(f"step {taken[0]}, {step_told(short, taken[0])}, is not refused", short)


def goes_on_after_refusal(subject: Trial, story: tuple[Call, int | Sequence[int]]) -> None:
    """The story is right to its end. Whether its step, or all of several, is refused at all is another requirement's
    matter."""
    if all_refused(subject, story):
        subject.agrees(story[0])


def all_refused(subject: Trial, story: tuple[Call, int | Sequence[int]]) -> bool:
    """Whether a story's step, or each of several, is refused."""
    call, bad = story
    seen = subject.answered(call).results
    return all(f"{number} refused" in seen for number in ((bad,) if isinstance(bad, int) else bad))


def keeps_arguments(subject: Trial, call: Call) -> None:
    """Every argument that is an array, or a list of numbers, is bit for bit the same after the call."""
    dicts = {name for name, value in call.arguments.items() if isinstance(value, Mapping)}
    if changed := [what for what in subject.answered(call).changed if what not in dicts]:
        raise Nonconformance(f"the call changes {', '.join(changed)}", call)


def keeps_dicts(subject: Trial, call: Call) -> None:
    """Every argument that is a dict has after the call, refused or not, what it had: the same arrays, equal numbers and texts."""
    dicts = {name for name, value in call.arguments.items() if isinstance(value, Mapping)}
    if changed := [what for what in subject.observe(call).changed if what in dicts]:
        raise Nonconformance(f"the call changes what is in {', '.join(changed)}", call)


def depends_on_arguments_alone(
    subject: Trial, first: Call, second: Call, where: np.ndarray | None = None, *, draws: bool = True
) -> None:
    """Two calls right in turn; the first one again is bit-equal; no earlier result is touched, and no generator of the whole
    process is seeded.

    where: the elements of both results that the oracle speaks of, all by default. draws: whether a call may draw from such
    a generator, as a layer that is made in it does for weights that it then replaces.
    """
    before = subject.agrees(first, where)
    subject.agrees(second, where)
    seen = subject.answered(first, watch=True)
    for part, value in (before if isinstance(before, dict) else {"": before}).items():
        repeated = seen.results.get(part, np.zeros(0))
        if not bit_equal(value, repeated):
            different = int((f64(value) != f64(repeated)).sum()) if value.shape == repeated.shape else value.size
            raise Nonconformance(
                f"repeated after another call, {part or 'it'} differs in {different} of {value.size} elements", first
            )
    if "earlier result" in seen.changed:
        raise Nonconformance("the call changes the earlier result", first)
    # A seed shows in the second of two calls that are watched: it leaves what the first left.
    if "random state" in seen.changed and (not draws or "random seed" in subject.answered(first, watch=True).changed):
        raise Nonconformance("the call changes the random state", first)


def reads_what_was_written(subject: Trial, call: Call, other: Call, *arguments: str) -> None:
    """A call is right on the arrays of another one, into which its caller has written since."""
    subject.observe(other.refilling(*arguments))
    subject.agrees(call.refilling(*arguments))


def goes_on_after_a_refused_call(subject: Trial, call: Call, bad: Call) -> None:
    """A call is right behind one with bad arguments. Whether that is refused is another requirement's matter."""
    if subject.observe(bad).raised:
        subject.agrees(call)


def serves_more_and_fewer(
    subject: Trial,
    call: Call,
    *arguments: str,
    axis: int = -2,
    where: Callable[[Call], np.ndarray] | None = None,
) -> None:
    """One object is right on the first entry of an axis of its arguments, then on more of them, and on the first again, as a
    layer is given a token, a prompt and a token. where: the elements of a call's result that the oracle speaks of."""
    whole = {name: call.arguments[name] for name in arguments}
    few = call.having(**{name: resized(x, axis, 1) for name, x in whole.items()})
    more = call.having(**{name: resized(x, axis, x.shape[axis] + 2) for name, x in whole.items()})
    for one in (few, more, few):
        subject.agrees(one.kept(0), where(one) if where else None)


def serves_both(subject: Trial, call: Call, lookup: Call) -> None:
    """One object is right in turn on calls of two of its operations, the second of which not every subject offers."""
    if lookup.operation not in subject.subject.description.offers:
        raise OutsideEnvelope(f"{lookup.operation} is not offered")
    for one in (lookup, call, lookup, call):
        subject.agrees(one.kept(0))


def returns(subject: Trial, call: Call, shape: tuple[int, ...], dtype: str) -> None:
    """The result has exactly this shape and dtype."""
    got = subject.value(call)
    if got.shape != shape:
        raise Nonconformance(f"the result has shape {list(got.shape)}, not {list(shape)}", call)
    if got.dtype.name != dtype:
        raise Nonconformance(f"the result is {got.dtype.name}, not {dtype}", call)


def bit_equal(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two arrays are the same to the last bit, dtype and NaN included."""
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def claimed(subject: Trial, key: str, choice: Any, choices: Sequence[Any]) -> Any:
    """The choice, or the first of the choices that the subject claims; OutsideEnvelope where it claims none of them."""
    left = [one for one in choices if one in subject.envelope[key]]
    if not left:
        raise OutsideEnvelope(f"{key} {list(subject.envelope[key])} has none of {list(choices)}")
    return choice if choice in left else left[0]
