"""Settings: of a ``with``, of a thread, of the process; and who is told of launches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Thread

import numpy as np
import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import Mode, Settings, settings
from inferspec.tools.metalsim.runtime import Launch, Outcome
from inferspec.tools.metalsim.settings import current


@pytest.fixture
def base() -> Iterator[None]:
    """The settings and observers of the process are as before afterwards."""
    module = sys.modules[Settings.__module__]  # the package's own `settings` is the function
    before, observers = module._of_process, list(module._observers)
    yield
    metalsim.configure(before)
    module._observers[:] = observers


def seen_in_a_thread() -> Settings:
    found: list[Settings] = []
    thread = Thread(target=lambda: found.append(current()))
    thread.start()
    thread.join()
    return found[0]


def test_what_is_not_given_stays_as_it_was() -> None:
    with settings(mode="check", timeout=3), settings(timeout=5):
        assert (current().mode, current().timeout) == (Mode.CHECK, 5)
    assert current().mode is Mode.FAST


@pytest.mark.usefixtures("base")
def test_settings_of_the_process_reach_its_threads_and_those_of_a_with_do_not() -> None:
    metalsim.configure(Settings(mode=Mode.COST))
    with settings(mode="check"):
        assert current().mode is Mode.CHECK
        assert seen_in_a_thread().mode is Mode.COST
    assert current().mode is Mode.COST


@pytest.mark.usefixtures("base", "cxx")
def test_observers_are_told_of_every_launch_beside_those_whom_settings_name() -> None:
    observed: list[tuple[Launch, Outcome]] = []
    named: list[str] = []
    metalsim.observe(lambda launch, outcome: observed.append((launch, outcome)))
    kernel = metalsim.metal_kernel("one", ["x"], ["out"], "out[0] = x[0];")
    for _ in range(2):
        with settings(on_launch=lambda launch, _: named.append(launch.kernel)):
            kernel(
                inputs=[np.ones(9, np.float32)],
                grid=(1, 1, 1),
                threadgroup=(1, 1, 1),
                output_shapes=[(1,)],
                output_dtypes=[np.float32],
            )
    assert [launch.kernel for launch, _ in observed] == named
    assert len(named) == 2
    assert observed[0][0].listing is not None
    assert observed[0][0].listing.lines()["one.metal"][1] == "out[0] = x[0];"


@pytest.mark.parametrize("given", [{"timeout": 0}, {"mode": "thorough"}])
def test_settings_that_there_are_not_are_refused(given: dict) -> None:
    with pytest.raises(ValueError, match=r"timeout|thorough"), settings(**given):
        pass
