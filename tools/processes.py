"""Worker processes for the tools that judge much."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor


def pool(processes: int | None = None, initializer: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """Workers that start from nothing, and end with their parent; processes: how many, by default one for each core.

    A fork of a process that has used MLX waits for ever at its first evaluation: the threads of MLX's streams are not
    in the copy.
    """
    context = multiprocessing.get_context("spawn")
    count = processes or os.cpu_count() or 1
    return ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(initializer,))


def _begin(initializer: Callable[[], None] | None) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer:
        initializer()


def _end_with_parent() -> None:
    """A parent that is killed tells nobody: its workers would wait for work for ever."""
    if parent := multiprocessing.parent_process():
        parent.join()
    os._exit(1)
