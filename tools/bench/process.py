"""Processes that contenders live in: libraries keep their threads, allocators and crashes to themselves."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any

from inferspec.tools.processes import pool

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "INFERSPEC_THREADS")
"""Variables by which libraries are told how many threads to use."""


class Crashed(RuntimeError):
    """The process died during a task; the message names it."""


def threads_environment(threads: int) -> dict[str, str]:
    """The environment of a process that uses so many threads."""
    return dict.fromkeys(THREADS, str(threads))


class Process:
    """One process that does one task at a time; use it as a context manager.

    environment: variables that it has besides ours; an empty one is taken away.
    """

    def __init__(self, name: str, environment: Mapping[str, str]) -> None:
        self.name = name
        # A new interpreter, not a fork: libraries read their variables when they are imported.
        self._executor = pool(1)
        with _environment(environment):
            self.do(os.getpid)

    def do(self, task: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of a module there and return what it returns; what it raises passes through.

        Crashed when the process dies of it, and ever after.
        """
        try:
            return self._executor.submit(task, *arguments).result()
        except BrokenProcessPool as error:
            raise Crashed(f"the process of {self.name} died") from error

    def close(self) -> None:
        """End the process."""
        self._executor.shutdown(cancel_futures=True)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._executor.__exit__(kind, error, at)


@contextlib.contextmanager
def _environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Variables as a process that starts now shall find them."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set({name: value or "" for name, value in before.items()})


def _set(variables: Mapping[str, str]) -> None:
    for name, value in variables.items():
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
