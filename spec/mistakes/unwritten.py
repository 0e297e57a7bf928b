"""Mistakes in how much is computed: tails of tiles and steps, ends of grids, rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.mistakes.steps import honest, replacing


def leaves_unwritten(keep: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Some elements of the output are never written; `keep` gives the view of it that is."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        written = np.zeros(result.shape, result.dtype)
        keep(written)[...] = keep(result)
        return written

    return {"respond": respond}


def batch_of_one_up_to(rows: int, past: int) -> Change:
    """Of a batch of one B×L×E with more than `past` rows the first `rows` are written, or all but the last -`rows` of them."""
    return leaves_unwritten(
        lambda out: out[:, :rows] if out.ndim == 3 and len(out) == 1 and out.shape[1] > past else out
    )


def decodes_up_to(most: int = 32) -> Change:
    """Of batches of a token each those past so many are not written: paths of their own serve them, and thousands of them."""
    return leaves_unwritten(lambda out: out[:most] if out.ndim == 3 and out.shape[1] == 1 and len(out) < 1024 else out)


STEPS = (256, 512, 1024, 2048)
"""How many features kernels take at once."""


def of_whole_steps(features: int, step: int) -> int:
    """How many of so many features are taken in whole steps, where they are that and half a step more; else all."""
    return features - step // 2 * (features > step and features % step == step // 2)


def half_a_step_unwritten(step: int) -> Change:
    """Where a row of the result is whole steps and half a one more, that half is never written."""
    return leaves_unwritten(lambda result: result[..., : of_whole_steps(result.shape[-1], step)])


def last_past_tiles_unwritten(tile: int, past: int, axis: int = -1) -> Change:
    """Where an axis of the result, counted from the end, is tiles and `past` entries more, its last one is never written."""

    def written(result: np.ndarray) -> np.ndarray:
        if result.ndim < -axis:
            return result
        entries = np.moveaxis(result, axis, 0)
        return entries[:-1] if len(entries) >= tile and len(entries) % tile == past else entries

    return leaves_unwritten(written)


def tiles_past_two_unwritten(tile: int = 128) -> Change:
    """Of rows and entries of them that are more than two tiles each, what lies past two both ways is never written: groups of
    threads that take a second tile write it elsewhere."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = np.array(honest(self, a))
        if result.ndim > 1 and result.size:
            result.reshape(-1, result.shape[-1])[2 * tile :, 2 * tile :] = 0
        return result

    return {"respond": respond}


def counts_rows_in_16_bits() -> Change:
    """Rows past the 65535th are never written: as many as an axis of a grid has."""
    return leaves_unwritten(lambda result: result.reshape(-1, *result.shape[-1:])[: 2**16 - 1])


def counts_axis_in_16_bits(axis: int) -> Change:
    """Of one axis of the result, counted from the end, what comes past the 65535th entry is never written: each axis of a
    grid has its own end."""

    def written(result: np.ndarray) -> np.ndarray:
        return np.moveaxis(result, axis, 0)[: 2**16 - 1] if result.ndim >= -axis else result

    return leaves_unwritten(written)


def counts_rows(most: int, wide: Callable[[int], bool]) -> Change:
    """Of rows of so many features that `wide` is true, those past as many as a grid is launched with are never written."""

    def written(result: np.ndarray) -> np.ndarray:
        return result.reshape(-1, *result.shape[-1:])[:most] if result.ndim and wide(result.shape[-1]) else result

    return leaves_unwritten(written)


def swaps_batches() -> Change:
    """Of four axes and more the first two are exchanged when rows are folded back."""

    def respond(self: Operation, a: Arguments) -> Any:
        result = honest(self, a)
        return result.swapaxes(0, 1).reshape(result.shape) if result.ndim > 3 else result

    return {"respond": respond}


def first_row_for_all(argument: str) -> Change:
    """The first entry of the leading axis of one argument serves every batch row."""

    def first(self: Operation, a: Arguments, value: np.ndarray) -> np.ndarray:
        return np.broadcast_to(value[:1], value.shape) if value.ndim > 1 and len(value) else value

    return replacing(argument, first)


def wraps_batches(argument: str, rows: int = 8) -> Change:
    """Entries of the leading axis of one argument are counted modulo `rows`: as many as a kernel was tried with."""
    return replacing(argument, lambda self, a, value: value[np.arange(len(value)) % rows] if value.ndim > 2 else value)
