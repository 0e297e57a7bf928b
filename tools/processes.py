"""Worker processes for the tools that judge much."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from types import TracebackType
from typing import Any

from inferspec.tools.terminal import interrupts_later


class Pool(ProcessPoolExecutor):
    """Workers that end without a word: at an interrupt by themselves, with whoever uses them at an error."""

    def submit(self, task: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        # A worker starts here; until it is ready for an interrupt, none reaches it.
        with interrupts_later():
            return super().submit(task, *arguments, **named)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> bool | None:
        if kind is not None:
            # Nobody waits any more for what they are at, which may take minutes.
            for worker in list((self._processes or {}).values()):
                worker.terminate()
        return super().__exit__(kind, error, at)


def pool(processes: int | None = None, initializer: Callable[[], None] | None = None) -> Pool:
    """Workers that start from nothing, and end with their parent; processes: how many, by default one for each core.

    A fork of a process that has used MLX waits for ever at its first evaluation: the threads of MLX's streams are not
    in the copy.
    """
    context = multiprocessing.get_context("spawn")
    count = processes or os.cpu_count() or 1
    return Pool(count, mp_context=context, initializer=_begin, initargs=(initializer,))


def _begin(initializer: Callable[[], None] | None) -> None:
    # Not Python's own way, which is a traceback from each.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer:
        initializer()


def _end_with_parent() -> None:
    """A parent that is killed tells nobody: its workers would wait for work for ever."""
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)
