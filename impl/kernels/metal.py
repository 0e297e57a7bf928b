"""Whether Metal kernels can run here, and the kernels themselves, from their sources in this folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx

FOLDER = Path(__file__).resolve().parent
SIMDGROUP = 32
"""Threads of a SIMD-group, on every Apple GPU."""

PROBES = {
    "bfloat": "out[0] = static_cast<bfloat>(1.0f) == static_cast<bfloat>(1.0f);",
    "matrix": """
        simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
        simdgroup_multiply_accumulate(m, m, m, m);
        out[0] = m.thread_elements()[0] > 0.0f;
    """,
}
"""What an older GPU may lack, by name: bodies of kernels that use it. Every lane writes the same."""


class Availability(StrEnum):
    """Where the kernels run: on a Metal device, in a simulator that stands in for `mx.fast.metal_kernel`, or nowhere."""

    NATIVE = "native"
    SIMULATED = "simulated"
    NONE = "none"


def available() -> Availability:
    """Where the kernels run now."""
    if getattr(mx.fast.metal_kernel, "simulated", False):
        return Availability.SIMULATED
    if mx.metal.is_available() and mx.default_device() == mx.Device(mx.gpu):
        return Availability.NATIVE
    return Availability.NONE


def dtypes() -> tuple[mx.Dtype, ...]:
    """The dtypes of activations that the kernels take here: an older GPU may lack bfloat16; none where none run."""
    match available():
        case Availability.NONE:
            return ()
        case Availability.NATIVE if not gpu_takes("bfloat"):
            return (mx.float32, mx.float16)
    return (mx.float32, mx.float16, mx.bfloat16)


def runs(*arrays: mx.array) -> bool:
    """Whether the kernels run here, on arrays of these dtypes."""
    taken = dtypes()
    return all(array.dtype in taken for array in arrays)


def has_matrices() -> bool:
    """Whether the GPU multiplies SIMD-group matrices (Apple's family 7 and later)."""
    return available() is not Availability.NATIVE or gpu_takes("matrix")


def threads(simdgroups: int) -> int:
    """Threads of that many SIMD-groups."""
    return SIMDGROUP * simdgroups


class Kernel:
    """A kernel: the body in `name`.metal, after common.metal and the headers named.

    contiguous: whether MLX copies inputs that are not row-contiguous; a kernel that reads strides takes them as they are.
    """

    def __init__(self, name: str, inputs: Sequence[str], headers: Sequence[str] = (), contiguous: bool = True) -> None:
        self.name, self.inputs, self.headers, self.contiguous = name, tuple(inputs), tuple(headers), contiguous

    def __call__(
        self,
        inputs: Sequence[Any],
        template: Sequence[tuple[str, Any]],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        shape: Sequence[int],
        dtype: mx.Dtype,
    ) -> mx.array:
        """Launch it on `grid` threads; its one output has that shape and dtype. Numbers among the inputs: float32 or int32."""
        # Built anew when another `mx.fast.metal_kernel` stands in.
        launch = _built(mx.fast.metal_kernel, self.name, self.inputs, self.headers, self.contiguous)
        outputs = launch(
            inputs=[value if isinstance(value, mx.array) else mx.array(value) for value in inputs],
            template=list(template),
            grid=grid,
            threadgroup=threadgroup,
            output_shapes=[tuple(shape)],
            output_dtypes=[dtype],
        )
        return outputs[0]


@cache
def source(name: str) -> str:
    """The text of a file of this folder, with its name for the compiler's messages."""
    return f'#line 1 "{name}.metal"\n' + (FOLDER / f"{name}.metal").read_text(encoding="utf-8")


@cache
def _built(
    metal_kernel: Callable[..., Any], name: str, inputs: tuple[str, ...], headers: tuple[str, ...], contiguous: bool
) -> Callable[..., Any]:
    return metal_kernel(
        name=f"inferspec_{name}",
        input_names=list(inputs),
        output_names=["out"],
        source=source(name),
        header="\n".join(source(header) for header in ("common", *headers)),
        ensure_row_contiguous=contiguous,
    )


@cache
def gpu_takes(feature: str) -> bool:
    """Whether a kernel with one of PROBES compiles and runs."""
    probe: Any = mx.fast.metal_kernel(
        name=f"inferspec_{feature}_probe",
        input_names=[],
        output_names=["out"],
        source=PROBES[feature],
        header="using namespace metal;\n",
    )
    try:
        mx.eval(
            probe(
                inputs=[],
                grid=(SIMDGROUP, 1, 1),
                threadgroup=(SIMDGROUP, 1, 1),
                output_shapes=[(1,)],
                output_dtypes=[mx.bool_],
            )
        )
    except RuntimeError:
        return False
    return True
