"""The gated MLP of Llama and Qwen3: w_down · (silu(w_gate · x) ∘ (w_up · x)).

Shapes: x N..×E, w_gate and w_up I×E, w_down E×I, result N..×E, where E is dims and I is hidden_dims.

Sources: Shazeer 2020 (GLU variants), the tiny-llm course, week 1 day 4.
"""

from __future__ import annotations

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.linear import Silu, product_budget, product_roundings
from inferspec.spec.numerics import Precision, f64, rounding

COURSE = "tiny-llm course, week 1 day 4"


class SwiGLU(Operation):
    """down(silu(gate(x)) ∘ up(x)), three linear layers without bias."""

    signature = Signature.parse("SwiGLU(dims, hidden_dims, w_gate, w_up, w_down)(x)")
    plain = "swiglu"
    implied = frozenset({"dims", "hidden_dims"})
    silu = Silu()

    def guard(self, a: Arguments) -> None:
        wide, back = (a.hidden_dims, a.dims), (a.dims, a.hidden_dims)
        for name, shape in (("w_gate", wide), ("w_up", wide), ("w_down", back)):
            if getattr(a, name).shape != shape:
                raise ValueError(f"{name} is {getattr(a, name).shape}, not {shape}")
        if a.x.ndim < 1 or a.x.shape[-1] != a.dims:
            raise ValueError(f"x is {a.x.shape}, its last axis is not {a.dims}")

    # The steps, in the order of the formula.

    def gate(self, x: np.ndarray, a: Arguments) -> np.ndarray:
        return x @ f64(a.w_gate).T

    def up(self, x: np.ndarray, a: Arguments) -> np.ndarray:
        return x @ f64(a.w_up).T

    def activate(self, gate: np.ndarray, dtype: str) -> np.ndarray:
        return self.silu.activate(gate, dtype)

    def combine(self, gate: np.ndarray, up: np.ndarray, dtype: str) -> np.ndarray:
        return self.activate(gate, dtype) * up

    def down(self, hidden: np.ndarray, a: Arguments) -> np.ndarray:
        return hidden @ f64(a.w_down).T

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: each step may round its result to the dtype; sums are in float32.

        dg, du: `product_budget` of the two projections. Silu carries dg, adds its own budget: ds. The product
        silu(g)·u is off by ds(|u| + du) + |silu(g)|du and a rounding: dh. The last product carries dh·|w_down|ᵀ.
        """
        x, dtype = f64(a.x), self.result_dtype(a)
        with np.errstate(all="ignore"):
            gate, up = self.gate(x, a), self.up(x, a)
            hidden = self.combine(gate, up, dtype)
            value = self.down(hidden, a)
            gate_error = self.projection_budget(x, gate, a.w_gate, dtype, precision)
            up_error = self.projection_budget(x, up, a.w_up, dtype, precision)
            hidden_error = self.hidden_budget(gate, gate_error, up, up_error, dtype, precision)
            carried = hidden_error @ np.abs(f64(a.w_down)).T
            budget = self.projection_budget(np.abs(hidden) + hidden_error, value, a.w_down, dtype, precision, carried)
        return Answer(value, budget)

    def projection_budget(
        self,
        x: np.ndarray,
        product: np.ndarray,
        weight: np.ndarray,
        dtype: str,
        precision: Precision,
        carried: np.ndarray | float = 0.0,
    ) -> np.ndarray:
        magnitude = np.abs(x) @ np.abs(f64(weight)).T
        roundings = product_roundings(precision)
        return product_budget(magnitude, product, product, x.shape[-1], roundings, dtype, carried)

    def hidden_budget(
        self,
        gate: np.ndarray,
        gate_error: np.ndarray,
        up: np.ndarray,
        up_error: np.ndarray,
        dtype: str,
        precision: Precision,
    ) -> np.ndarray:
        active = self.silu.activate(gate, dtype)
        carried = self.silu.carried(gate, gate_error)
        active_error = carried + self.silu.budget(gate, np.abs(active) + carried, dtype, precision)
        error = active_error * (np.abs(up) + up_error) + np.abs(active) * up_error
        return error + rounding(np.abs(active * up) + error, dtype)

    def result_dtype(self, a: Arguments) -> str:
        return a.x.dtype.name


def _mlp(id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = "") -> Requirement:
    return Requirement(id, text, "SwiGLU", level, aspect, source or COURSE)


MLP_01 = _mlp("MLP-01", "the result is w_down · (silu(w_gate · x) ∘ (w_up · x))")
MLP_02 = _mlp(
    "MLP-02",
    "silu acts on the gate and not on up: exchanging w_gate and w_up changes the result",
    source="mlx-lm 5261ab85; PROPERTIES ML1",
)
MLP_03 = _mlp("MLP-03", "where the gate projection is zero, the result is zero", source="PROPERTIES ML1")
MLP_04 = _mlp("MLP-04", "each of the three weights is used, once and in its place", source="PROPERTIES X13")
MLP_05 = _mlp(
    "MLP-05",
    "intermediates may be rounded to the dtype, but silu is accurate relative to itself and sums are in float32",
    source="skyzh/tiny-llm db71f15; PROPERTIES ML2, X5",
)
MLP_06 = _mlp(
    "MLP-06",
    "a batch is the stack of its rows, for any leading dims and number of rows",
    source="sglang#26188; PROPERTIES X3",
)
MLP_07 = _mlp(
    "MLP-07", "x and each weight may be a strided view: the result is that of their copies", source="PROPERTIES X1"
)
MLP_08 = _mlp(
    "MLP-08", "the result has the shape and dtype of x", aspect=Aspect.DTYPE, source="sglang#26188; PROPERTIES X4"
)
MLP_09 = _mlp("MLP-09", "no argument is changed", source="PROPERTIES X6")
MLP_10 = _mlp(
    "MLP-10",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="PROPERTIES X7, X11",
)
MLP_11 = _mlp(
    "MLP-11",
    "weights that do not fit dims and hidden_dims, and an x whose last axis is not dims, are refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
MLP_12 = _mlp(
    "MLP-12",
    "every dims and hidden_dims is right, also just beside tile sizes (8, 32, 64)",
    source="PROPERTIES X2, X10",
)
MLP_13 = _mlp(
    "MLP-13",
    "weights in float32, all or one of them, beside an x in half precision are refused, or read for their numbers",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9",
)


CONTRACT = Contract(
    component="mlp",
    title="SwiGLU",
    version=1,
    operations=(SwiGLU,),
    envelope={
        "dtypes": ("float32", "float16", "bfloat16"),
        "leading_dims": ((), (1,), (2,), (2, 3), (2, 1, 3), (9, 2)),
        "features": 2**14,
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
