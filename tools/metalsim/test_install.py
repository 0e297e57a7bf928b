"""In the place of `mx.fast.metal_kernel`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import Mode, Schedule, settings
from inferspec.tools.metalsim.settings import current

COPY = "uint i = thread_position_in_grid.x; out[i] = x[i];"


def state() -> tuple[Any, ...]:
    """Everything that install() may change."""
    return mx.fast.metal_kernel, mx.metal.is_available, mx.is_available, compiles(), mx.default_device()


def compiles() -> bool:
    calls = []
    function = mx.compile(lambda x: calls.append(1) or x)
    function(mx.array(1.0))
    function(mx.array(1.0))
    return len(calls) == 1


@pytest.fixture(autouse=True)
def left_as_found() -> Iterator[None]:
    before = state()
    yield
    metalsim.uninstall()
    assert state() == before


def copied(x: mx.array, **changed: Any) -> Any:
    kernel = mx.fast.metal_kernel(name="copy", input_names=["x"], output_names=["out"], source=COPY)
    arguments = {
        "inputs": [x],
        "grid": (9, 1, 1),
        "threadgroup": (9, 1, 1),
        "output_shapes": [(9,)],
        "output_dtypes": [mx.float32],
    }
    return kernel(**(arguments | changed))[0]


def test_uninstall_puts_back_exactly_what_was_there() -> None:
    before = state()
    metalsim.install()
    assert all(new is not old for new, old in zip(state()[:3], before[:3], strict=True))
    metalsim.uninstall()
    assert state() == before


def test_both_may_be_said_twice() -> None:
    before = state()
    metalsim.uninstall()
    metalsim.install()
    inside = state()
    metalsim.install()
    assert state() == inside
    metalsim.uninstall()
    metalsim.uninstall()
    assert state() == before


def test_inside_a_with_it_is_installed_and_outside_it_is_as_before() -> None:
    before = state()
    with metalsim.installed():
        assert mx.fast.metal_kernel.simulated
        with metalsim.installed():
            pass
        assert mx.fast.metal_kernel.simulated, "an inner one must not undo an outer one"
    assert state() == before
    with pytest.raises(ZeroDivisionError), metalsim.installed():
        raise ZeroDivisionError
    assert state() == before


def test_code_that_asks_for_metal_is_told_that_it_is_there_and_the_device_stays() -> None:
    device = mx.default_device()
    with metalsim.installed():
        assert mx.metal.is_available()
        assert mx.is_available(mx.gpu)
        assert mx.is_available(mx.Device(mx.gpu, 0))
        assert mx.is_available(mx.cpu)
        assert mx.default_device() == device


def test_compile_is_off_inside_and_stays_off_where_it_was() -> None:
    with metalsim.installed():
        assert not compiles()
    assert compiles()
    mx.disable_compile()
    try:
        with metalsim.installed():
            assert not compiles()
        assert not compiles()
    finally:
        mx.enable_compile()


@pytest.mark.usefixtures("cxx")
def test_kernels_run_unchanged_and_always_return_mlx_arrays() -> None:
    x = mx.arange(9, dtype=mx.float32)
    with metalsim.installed():
        assert mx.array_equal(copied(x), x)
        assert mx.array_equal(copied(x, stream=mx.gpu), x)
        assert mx.array_equal(mx.compile(copied)(x), x)
        assert isinstance(copied(np.arange(9, dtype=np.float32)), mx.array)
        kernel = mx.fast.metal_kernel("one", [], ["out"], "out[thread_position_in_grid.x] = 1;")
        assert kernel.simulated
    (out,) = kernel(inputs=[], grid=(3, 1, 1), threadgroup=(3, 1, 1), output_shapes=[(3,)], output_dtypes=[mx.bfloat16])
    assert mx.array_equal(out, mx.ones((3,), mx.bfloat16)), "a kernel that was made inside runs outside"


@pytest.mark.usefixtures("cxx")
def test_kernels_run_inside_gradients_of_custom_functions() -> None:
    with metalsim.installed():

        @mx.custom_function
        def cube(x: mx.array) -> mx.array:
            return copied(x) ** 3

        @cube.vjp
        def cube_vjp(primals: Any, cotangent: Any, _output: Any) -> Any:
            return 3 * copied(primals) ** 2 * cotangent

        gradient = mx.grad(lambda x: cube(x).sum())(mx.arange(9, dtype=mx.float32))
        assert mx.array_equal(gradient, 3 * mx.arange(9, dtype=mx.float32) ** 2)


def test_a_kernel_has_no_derivative_rather_than_one_of_zero() -> None:
    with metalsim.installed():
        double = mx.fast.metal_kernel(
            "double", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = 2 * x[i];"
        )

        def run(x: mx.array) -> mx.array:
            (out,) = double(
                inputs=[x], grid=(4, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(4,)], output_dtypes=[mx.float32]
            )
            return out

        with pytest.raises(ValueError, match="double has no derivative"):
            mx.grad(lambda x: run(x).sum())(mx.ones(4))
        with pytest.raises(ValueError, match="double has no derivative"):
            mx.jvp(run, [mx.ones(4)], [mx.ones(4)])


def test_settings_nest_and_end() -> None:
    default = current()
    with settings(mode="check", timeout=5):
        assert (current().mode, current().timeout) == (Mode.CHECK, 5)
        with settings(schedule=Schedule(order="reverse")):
            assert (current().mode, current().schedule.order) == (Mode.CHECK, "reverse")
        assert current().schedule == default.schedule
    assert current() == default


def test_settings_are_of_their_thread() -> None:
    seen = []
    with settings(mode="check"):
        thread = threading.Thread(target=lambda: seen.append(current().mode))
        thread.start()
        thread.join()
    assert seen == [Mode.FAST]


@pytest.mark.parametrize(
    ("changed", "words"), [({"mode": "slow"}, "slow"), ({"timeout": 0}, "timeout is 0; it takes seconds above 0")]
)
def test_settings_that_do_not_fit(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words), settings(**changed):
        pass


@pytest.mark.usefixtures("cxx")
def test_launches_are_told_to_who_asks() -> None:
    seen = []
    with metalsim.installed(), settings(mode="check", on_launch=lambda launch, outcome: seen.append((launch, outcome))):
        copied(mx.arange(9, dtype=mx.float32))
    ((launch, outcome),) = seen
    assert launch.kernel == "custom_kernel_copy_float_float"
    assert (launch.grid, launch.threadgroup, launch.mode) == ((9, 1, 1), (9, 1, 1), Mode.CHECK)
    assert [(b.name, b.writable, b.initialised) for b in launch.buffers] == [("x", False, True), ("out", True, False)]
    assert outcome.reports == ()
