"""A kernel among MLX's function transformations: where MLX only traces, its own operations take the kernel's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

Operation = Callable[..., mx.array]


def transformable(kernel: Operation, plain: Operation, constants: Sequence[mx.array] = ()) -> Operation:
    """Return a function of arrays that runs `kernel`, and has the derivatives of `plain`, the same in MLX's operations.

    `kernel` gets evaluated arrays. Under `mx.compile` and `mx.vmap` arrays have no values yet, and `plain` is traced in
    its place. `mx.grad`, `mx.vjp` and `mx.jvp` differentiate `plain` at the kernel's arguments. constants: further arrays
    that `kernel` reads, and that nothing is differentiated by.
    """

    def call(*arrays: mx.array) -> mx.array:
        try:
            mx.eval(*arrays, *constants)
        except (RuntimeError, ValueError):
            return plain(*arrays)
        return _differentiable(kernel, plain)(*arrays)

    return call


def _differentiable(kernel: Operation, plain: Operation) -> Operation:
    function: Any = mx.custom_function(kernel)

    @function.vjp
    def vjp(primals: Any, cotangent: mx.array, _: mx.array) -> Any:
        several = isinstance(primals, tuple)
        derivatives = mx.vjp(plain, list(primals) if several else [primals], [cotangent])[1]
        return tuple(derivatives) if several else derivatives[0]

    @function.jvp
    def jvp(primals: Any, tangents: Any) -> mx.array:
        several = isinstance(primals, tuple)
        _, derivatives = mx.jvp(
            plain, list(primals) if several else [primals], list(tangents) if several else [tangents]
        )
        return derivatives[0]

    return function
