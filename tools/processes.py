"""Worker processes for the tools that judge much."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor


def pool(processes: int | None = None, initializer: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """Workers that start from nothing; processes: how many, by default one for each core.

    A fork of a process that has used MLX waits for ever at its first evaluation: the threads of MLX's streams are not
    in the copy.
    """
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(processes or os.cpu_count() or 1, mp_context=context, initializer=initializer)
