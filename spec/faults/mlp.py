"""Mistakes in the gated MLP, and other honest ways to compute it."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import mlp as changes
from inferspec.spec.changes.linear import running_product
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults.linear import COURSE_GAP, FLASHINFER, MLX, SILU_BUG, TIRED
from inferspec.spec.linear import Silu
from inferspec.spec.mistakes import (
    drifts,
    first_row_for_all,
    ignores_strides,
    in_half,
    leaves_unwritten,
    mutates,
    of_many_rows,
    of_one_row,
    only_where,
    paths_break_promises,
    paths_lack_a_feature,
    paths_misread,
    promotes,
    remembers,
    wraps_batches,
)
from inferspec.spec.mlp import (
    MLP_01,
    MLP_02,
    MLP_03,
    MLP_04,
    MLP_05,
    MLP_06,
    MLP_07,
    MLP_08,
    MLP_09,
    MLP_10,
    MLP_11,
    MLP_12,
    SwiGLU,
)
from inferspec.spec.numerics import Precision, f64

MLX_LM_BUG = "https://github.com/ml-explore/mlx-lm/commit/5261ab85"
SGLANG_BUG = "https://github.com/sgl-project/sglang/pull/26188"


FAULTS: tuple[Fault, ...] = (
    Fault(
        "mlp-gelu",
        "GELU in the place of SiLU",
        MLP_01,
        {"activate": changes.gelu},
        "FACTS.md: GELU for SiLU survives greedy text",
    ),
    Fault(
        "mlp-relu",
        "ReLU in the place of SiLU",
        MLP_01,
        {"activate": lambda self, gate, dtype: np.maximum(gate, 0)},
        TIRED,
    ),
    Fault(
        "mlp-no-activation",
        "the gate multiplies without an activation",
        MLP_01,
        {"activate": lambda self, gate, dtype: gate},
        TIRED,
    ),
    Fault(
        "mlp-sum-for-product",
        "gate and up are added instead of multiplied",
        MLP_01,
        {"combine": lambda self, gate, up, dtype: self.activate(gate, dtype) + up},
        TIRED,
    ),
    Fault(
        "mlp-silu-of-product",
        "silu acts on the product of gate and up",
        MLP_01,
        {"combine": lambda self, gate, up, dtype: self.activate(gate * up, dtype)},
        TIRED,
    ),
    Fault(
        "mlp-silu-on-up",
        "silu acts on up instead of the gate",
        MLP_02,
        {"combine": lambda self, gate, up, dtype: self.activate(up, dtype) * gate},
        MLX_LM_BUG,
    ),
    Fault(
        "mlp-silu-on-both",
        "silu acts on up as well",
        MLP_02,
        {"combine": lambda self, gate, up, dtype: self.activate(gate, dtype) * self.activate(up, dtype)},
        TIRED,
    ),
    Fault(
        "mlp-sigmoid-gate",
        "the sigmoid of the gate multiplies, so that a zero gate lets half of up through",
        MLP_03,
        {"activate": lambda self, gate, dtype: Silu.sigmoid(self.silu, gate, dtype)},
        TIRED,
    ),
    Fault(
        "mlp-residual-inside",
        "x is added to the result, as the layer around it should",
        MLP_03,
        {"down": lambda self, hidden, a: SwiGLU.down(self, hidden, a) + f64(a.x)},
        TIRED,
    ),
    Fault("mlp-gate-for-up", "up is projected by w_gate", MLP_04, {"up": lambda self, x, a: self.gate(x, a)}, TIRED),
    Fault(
        "mlp-up-for-gate",
        "the gate is projected by w_up",
        MLP_04,
        {"gate": lambda self, x, a: x @ f64(a.w_up).T},
        TIRED,
    ),
    Fault(
        "mlp-up-ignored",
        "w_up is not used",
        MLP_04,
        {"combine": lambda self, gate, up, dtype: self.activate(gate, dtype)},
        TIRED,
    ),
    Fault(
        "mlp-down-read-as-columns",
        "w_down is read as I×E instead of transposed",
        MLP_04,
        {"down": changes.down_read_as_columns},
        TIRED,
    ),
    Fault(
        "mlp-silu-cancels",
        "the sigmoid of a negative gate is 1 - sigmoid(|gate|) in the dtype",
        MLP_05,
        {"activate": changes.cancelling},
        SILU_BUG,
    ),
    Fault(
        "mlp-down-in-dtype",
        "the down projection accumulates in the input's dtype",
        MLP_05,
        {"down": lambda self, hidden, a: running_product(hidden, f64(a.w_down), a.x.dtype.name)},
        COURSE_GAP,
    ),
    Fault(
        "mlp-down-of-many-rows-in-dtype",
        "of 32 rows and more the down projection accumulates in the input's dtype",
        MLP_05,
        {"down": changes.down_of_many_rows},
        "kernels with a path for prompts; PROPERTIES X5",
    ),
    Fault(
        "mlp-hidden-in-float16",
        "of bfloat16 arguments the hidden features are kept in float16",
        MLP_05,
        {"combine": changes.in_float16},
        TIRED,
    ),
    Fault("mlp-batches-modulo-eight", "batch rows are counted modulo 8", MLP_06, wraps_batches("x"), TIRED),
    Fault("mlp-first-row-for-all", "the first batch row serves all", MLP_06, first_row_for_all("x"), TIRED),
    Fault(
        "mlp-rows-left-sorted",
        "the path for more than two rows sorts them and never sorts them back",
        MLP_06,
        {"respond": changes.left_sorted},
        SGLANG_BUG,
    ),
    *paths_break_promises(
        "mlp-many-rows",
        "of 32 rows and more in half precision",
        in_half(of_many_rows()),
        MLP_08,
        MLP_09,
        MLP_10,
        ("x", "w_gate", "w_up", "w_down"),
    ),
    *paths_misread(
        "mlp-many-rows",
        "of 32 rows and more in half precision",
        MLP_07,
        in_half(of_many_rows()),
        {"x": -1, "w_gate": -1, "w_up": -1, "w_down": -1},
    ),
    Fault("mlp-x-strides", "x is read as if it were contiguous", MLP_07, ignores_strides("x"), "PROPERTIES X1"),
    Fault(
        "mlp-gate-strides",
        "w_gate is read as if it were contiguous",
        MLP_07,
        ignores_strides("w_gate"),
        "PROPERTIES X1",
    ),
    Fault(
        "mlp-up-strides",
        "w_up is read as if it were contiguous",
        MLP_07,
        ignores_strides("w_up"),
        "PROPERTIES X1",
    ),
    Fault(
        "mlp-down-strides",
        "w_down is read as if it were contiguous",
        MLP_07,
        ignores_strides("w_down"),
        "PROPERTIES X1",
    ),
    Fault("mlp-promotes", "the result comes back in float32", MLP_08, promotes(), COURSE_GAP),
    Fault(
        "mlp-rows-flat",
        "the leading dims come back folded into one",
        MLP_08,
        {"respond": changes.rows_flat},
        SGLANG_BUG,
    ),
    Fault("mlp-changes-x", "x is overwritten by an intermediate", MLP_09, mutates("x"), "PROPERTIES X6"),
    Fault("mlp-changes-down", "w_down is scaled in place", MLP_09, mutates("w_down"), "PROPERTIES X6"),
    Fault(
        "mlp-remembers-down-of-single-rows",
        "the path of a single row keeps w_down, turned over, by its shape",
        MLP_10,
        only_where(of_one_row("x"), remembers("w_down")),
        TIRED,
    ),
    Fault(
        "mlp-single-row-strides",
        "the path of a single row reads x as if it were contiguous",
        MLP_07,
        only_where(of_one_row("x"), ignores_strides("x")),
        TIRED,
    ),
    Fault(
        "mlp-remembers-gate",
        "a fused gate weight cached by shape serves later layers",
        MLP_10,
        remembers("w_gate"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault("mlp-drifts", "the output buffer of an earlier call is added to", MLP_10, drifts(), TIRED),
    Fault(
        "mlp-fits-anything",
        "a weight or x of the wrong shape is read on or cut short",
        MLP_11,
        {"guard": lambda self, a: None, "respond": changes.fits_anything},
        "PROPERTIES X9",
    ),
    *paths_lack_a_feature(
        "mlp-tokens-of-models",
        "of a single token, where all dims fill several tiles,",
        MLP_12,
        lambda a: a.x.size == a.x.shape[-1] >= 128 and a.hidden_dims >= 256,
        TIRED,
    ),
    Fault(
        "mlp-hidden-tail",
        "hidden features past the last whole tile of 32 are left out",
        MLP_12,
        {"down": changes.tail_dropped},
        f"{MLX}/commit/aca758463",
    ),
    Fault(
        "mlp-wide-outputs",
        "outputs past the 1024th are not written: as many as a threadgroup has threads",
        MLP_12,
        leaves_unwritten(lambda result: result[..., :1024]),
        TIRED,
    ),
    Fault(
        "mlp-output-tail",
        "outputs past the last whole block of 8 are not written",
        MLP_12,
        leaves_unwritten(changes.first_vectors),
        f"{MLX}/issues/665",
    ),
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "mlp-rounds-each-layer",
        "gate, up, silu and their product are each rounded to the dtype",
        "SwiGLU",
        changes.ROUNDED,
    ),
    Variant(
        "mlp-one-projection",
        "gate and up are one product with the stacked weights, all kept in float32",
        "SwiGLU",
        {
            "gate": changes.half_of_one_product(False),
            "up": changes.half_of_one_product(True),
            "combine": changes.float32_combine,
        },
    ),
    Variant(
        "mlp-rounded-sigmoid",
        "the sigmoid is rounded to the dtype too",
        "SwiGLU",
        {**changes.ROUNDED, "activate": changes.rounded_sigmoid},
        Precision.NATIVE,
    ),
)
