"""Calls with packed weights, and what is asked of their parts; the suites of quantisation share them."""

from __future__ import annotations

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.linear import resized, with_few
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.properties.common import refuses
from inferspec.spec.numerics import Precision, f64, round_to
from inferspec.spec.quantization import Quantize

WAYS = {
    "bits": 4,
    "group size": 4,
    "other bits": 2,
    "other group size": 2,
    "scales": 4,
    "biases": 4,
    "rows": 4,
    "dtype": 4,
}
"""How parts may fail to belong together, and in how many ways each."""

BROKEN = tuple((bad, number) for bad, ways in WAYS.items() for number in range(ways))
GRIDS = ("bits", "group size")
NOT_OFFERED = tuple(way for way in BROKEN if way[0] in GRIDS)
UNMATCHED = tuple(way for way in BROKEN if way[0] not in GRIDS)
"""Ways in which a grid is not one of those that layers take, and ways in which their parts do not fit each other."""
SAME_BITS = (("dtype", 0), ("dtype", 3))


def grid_of(call: Call) -> tuple[int, int]:
    """Group size and bits."""
    a = {**Quantize.signature.parameters, **call.arguments}
    return a["group_size"], a["bits"]


def kept(call: Call) -> int:
    """The size of the last axis of a product."""
    if call.arguments.get("transpose", True):
        return len(call.arguments["packed"])
    return int(call.arguments["packed"].shape[-1] * 32 // call.arguments["bits"])


def broken(call: Call, bad: str, number: int) -> Call:
    """The call with parts that do not belong together."""
    packed, (size, bits) = call.arguments["packed"], grid_of(call)
    if bad == "bits":
        return call.having(bits=(7, 3, 5, 16)[number])
    if bad == "group size":
        return call.having(group_size=(96, 16, 48, 256)[number])
    if bad == "other bits":
        return call.having(bits=[other for other in (2, 4, 8) if other != bits][number])
    if bad == "other group size":
        return call.having(group_size=[other for other in (32, 64, 128) if other != size][number])
    if bad == "rows":
        part = ("scales", "biases")[number % 2]
        return call.having(**{part: resized(call.arguments[part], 0, len(packed) + (1 if number < 2 else -1))})
    if bad == "dtype":
        return call.having(packed=packed.astype(("int32", "uint8", "float32", "int64")[number]))
    values = call.arguments[bad]
    groups = values.shape[-1]
    return call.having(**{bad: resized(values, -1, (groups + 2, groups + 1, groups - 1, 2 * groups)[number])})


def refuses_parts(subject: Trial, call: Call, bad: tuple[str, int]) -> None:
    """Parts that do not belong together are refused; words that have the same bits in another dtype may be read as they are."""
    other = broken(call, *bad)
    if bad in SAME_BITS and not (seen := subject.observe(other)).raised and seen.value is not None:
        subject.compare(other, seen.value, subject.answer(call))
    else:
        refuses(subject, other)


def broadcast(call: Call, part: str) -> Call:
    """The call with a part that NumPy would broadcast: of one group where there are several, and the other way round."""
    value = call.arguments[part]
    return call.having(**{part: resized(value, -1, 1 if value.shape[-1] > 1 else 2)})


def of_one_row(call: Call, part: str) -> Call:
    """The call with a part that NumPy would broadcast: of one row of weights, where there are several."""
    return call.having(**{part: resized(call.arguments[part], -2, 1)})


def within_class(subject: Trial, call: Call) -> Call:
    """The call; of half the size for class native, which rounds code times scale to the dtype: it must keep its range."""
    return scaled(call, 0.5) if subject.precision is Precision.NATIVE else call


def scaled(call: Call, factor: float) -> Call:
    """The call with scales and biases, and so all weights, times a power of two."""
    return call.having(
        **{part: round_to(f64(call.arguments[part]) * factor, call.features["dtypes"]) for part in ("scales", "biases")}
    )


def with_nan_in_x(call: Call) -> Call:
    """The call with a NaN in one row of x, or in two."""
    return call.having(x=with_few(call.arguments["x"], np.nan, call.seed or 0))


def with_nan(call: Call, part: str) -> Call:
    """The call with a NaN in one scale or bias, or in those of two rows."""
    values = call.arguments[part].copy()
    seed = call.seed or 0
    rows = [seed, seed // 3][: 1 + seed % 2]
    values[[row % len(values) for row in rows], 0] = np.nan
    return call.having(**{part: values})


def of_other_weights(call: Call) -> Call:
    """The call of a layer or table of other weights."""
    parts = {name: -call.arguments[name] for name in ("scales", "biases")}
    return call.having(packed=~call.arguments["packed"], **parts)
