"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/mlp.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import half_accumulators, rounded, running_product
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.linear import Silu
from inferspec.spec.mistakes import of_whole_steps
from inferspec.spec.mlp import (
    SwiGLU,
)
from inferspec.spec.numerics import f64


def gelu(self: SwiGLU, gate: np.ndarray, dtype: str) -> np.ndarray:
    return 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))


def cancelling(self: SwiGLU, gate: np.ndarray, dtype: str) -> np.ndarray:
    gate = rounded(gate, dtype)
    positive = rounded(Silu.sigmoid(self.silu, np.abs(gate), dtype), dtype)
    return gate * np.where(gate < 0, 1 - positive, positive)


def overflowing(self: SwiGLU, gate: np.ndarray, dtype: str) -> np.ndarray:
    power = rounded(np.exp(gate), "float32")
    return gate * (power / (1 + power))


def of_vectors(activate: Callable[[SwiGLU, np.ndarray, str], np.ndarray]) -> Callable[..., np.ndarray]:
    """Of 64 hidden features and more the activation is this one."""

    def chosen(self: SwiGLU, gate: np.ndarray, dtype: str) -> np.ndarray:
        return (activate if gate.shape[-1] >= 64 else SwiGLU.activate)(self, gate, dtype)

    return chosen


def of_models(rows: range, dims: int, hidden: int) -> Callable[[Arguments], bool]:
    """Whether x has so many rows, and there are at least so many dims and hidden dims."""
    return lambda a: a.x.shape[-1] >= dims and len(a.w_gate) >= hidden and math.prod(a.x.shape[:-1]) in rows


def hidden_of_32_kib(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    """Of the first 8192 hidden features alone: as many float32 numbers as a group of threads shares."""
    return hidden[..., :8192] @ f64(a.w_down)[:, :8192].T


def half_a_step_unread(step: int) -> Change:
    """Where hidden dims are whole steps and half a one more, that half is not read."""

    def down(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
        read = of_whole_steps(hidden.shape[-1], step)
        return hidden[..., :read] @ f64(a.w_down)[:, :read].T

    return {"down": down}


def first_hidden_alone(room: int) -> Change:
    """Hidden dims past so many are not in the sum."""

    def down(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
        return hidden[..., :room] @ f64(a.w_down)[:, :room].T

    return {"down": down}


def masked_by_multiplying(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    product = SwiGLU.down(self, hidden, a)
    rows = product.reshape(-1, a.dims)
    return (rows + 0.0 * np.roll(rows, 1, axis=0)).reshape(product.shape)


def in_float16(self: SwiGLU, gate: np.ndarray, up: np.ndarray, dtype: str) -> np.ndarray:
    hidden = SwiGLU.combine(self, gate, up, dtype)
    with np.errstate(over="ignore"):
        return rounded(hidden, "float16") if dtype == "bfloat16" else hidden


def up_within_float16(self: SwiGLU, x: np.ndarray, a: Arguments) -> np.ndarray:
    """What is not gated is held within the range of float16, whatever the dtype."""
    return np.clip(SwiGLU.up(self, x, a), -65504.0, 65504.0)


def down_in_half_accumulators(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    return half_accumulators(hidden, f64(a.w_down), a.x.dtype.name)


def down_of_many_rows(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    if hidden[..., 0].size < 32:
        return SwiGLU.down(self, hidden, a)
    return running_product(hidden, f64(a.w_down), a.x.dtype.name)


def down_read_as_columns(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    return hidden @ f64(a.w_down).reshape(a.hidden_dims, a.dims)


def wide_squares_read_as_columns(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    return (down_read_as_columns if a.dims == a.hidden_dims >= 32 else SwiGLU.down)(self, hidden, a)


def nan_of_wide_layers_in_all(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    result = SwiGLU.down(self, hidden, a)
    return result + 0.0 * hidden.sum() if a.hidden_dims >= 256 else result


def tail_dropped(self: SwiGLU, hidden: np.ndarray, a: Arguments) -> np.ndarray:
    whole = a.hidden_dims // 32 * 32
    return hidden[..., :whole] @ f64(a.w_down)[:, :whole].T


def left_sorted(self: SwiGLU, a: Arguments) -> Any:
    result = Operation.respond(self, a)
    rows = result.reshape(-1, a.dims)
    if len(rows) <= 2:
        return result
    order = np.argsort(f64(a.x).reshape(-1, a.dims)[:, 0], kind="stable")
    return rows[order].reshape(result.shape)


def rows_flat(self: SwiGLU, a: Arguments) -> Any:
    return Operation.respond(self, a).reshape(-1, a.dims)


def fits_anything(self: SwiGLU, a: Arguments) -> Any:
    wide, back = (a.hidden_dims, a.dims), (a.dims, a.hidden_dims)
    fitted = {
        "x": np.resize(a.x, (*a.x.shape[:-1], a.dims)),
        "w_gate": np.resize(a.w_gate, wide),
        "w_up": np.resize(a.w_up, wide),
        "w_down": np.resize(a.w_down, back),
    }
    return Operation.respond(self, Arguments(**{**vars(a), **fitted}))


def fits(change: Callable[[Arguments], dict[str, np.ndarray]]) -> Change:
    """Some arguments are replaced by what `change` makes of them all, before anything is checked; the result has the shape of x."""

    def changed(a: Arguments) -> Arguments:
        return Arguments(**{**vars(a), **change(a)})

    def guard(self: SwiGLU, a: Arguments) -> None:
        SwiGLU.guard(self, changed(a))

    def respond(self: SwiGLU, a: Arguments) -> Any:
        return Operation.respond(self, changed(a)).reshape(a.x.shape)

    return {"guard": guard, "respond": respond}


def rows_of_dims(a: Arguments) -> dict[str, np.ndarray]:
    return {} if a.x.size % a.dims else {"x": a.x.reshape(-1, a.dims)}


def down_of_either_way(a: Arguments) -> dict[str, np.ndarray]:
    return {"w_down": a.w_down.T if a.w_down.shape == (a.hidden_dims, a.dims) else a.w_down}


def first_vectors(out: np.ndarray) -> np.ndarray:
    return out[..., : out.shape[-1] // 8 * 8]


def _rounded_projection(weight: str) -> Any:
    return lambda self, x, a: rounded(x @ f64(getattr(a, weight)).T, a.x.dtype.name)


def half_of_one_product(second: bool) -> Any:
    def project(self: SwiGLU, x: np.ndarray, a: Arguments) -> np.ndarray:
        both = rounded(x @ np.concatenate([f64(a.w_gate), f64(a.w_up)]).T, "float32")
        return both[..., a.hidden_dims :] if second else both[..., : a.hidden_dims]

    return project


def _rounded_combine(self: SwiGLU, gate: np.ndarray, up: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(rounded(self.activate(gate, dtype), dtype) * up, dtype)


def float32_combine(self: SwiGLU, gate: np.ndarray, up: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(rounded(self.activate(gate, dtype), "float32") * up, "float32")


def rounded_sigmoid(self: SwiGLU, gate: np.ndarray, dtype: str) -> np.ndarray:
    return gate * rounded(Silu.sigmoid(self.silu, gate, dtype), dtype)


ROUNDED = {"gate": _rounded_projection("w_gate"), "up": _rounded_projection("w_up"), "combine": _rounded_combine}
