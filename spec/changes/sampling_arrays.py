"""Which rows, numbers and arrays a sampler takes: see `spec/faults/sampling_arrays.py`."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Change
from inferspec.spec.mistakes import remembers
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.sampling import Sampler

Mask = np.ndarray


def counted_from_the_block(self: Sampler, z: np.ndarray, kept: Mask, a: Arguments) -> np.ndarray:
    """Where a row is one number, what is taken for its place is how many rows came before its block of 32768."""
    ids = Sampler.greedy(self, z, kept, a)
    return ids + np.arange(len(ids)) // 2**15 * 2**15 if z.shape[-1] == 1 else ids


def shared_number(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return np.broadcast_to(Sampler.uniforms(self, a, rows)[:1], (rows,)) if rows else Sampler.uniforms(self, a, rows)


def numbers_of_the_refused() -> Change:
    """Numbers are put into the sampler's buffer before they are looked at; those of a call that was refused serve the next."""

    def guard_uniform_shape(self: Sampler, a: Arguments) -> None:
        try:
            Sampler.guard_uniform_shape(self, a)
        except ValueError:
            vars(self)["numbers"] = f64(a.uniform).ravel()
            raise

    def uniforms(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
        left = vars(self).pop("numbers", None)
        return Sampler.uniforms(self, a, rows) if left is None else np.resize(left, rows)

    return {"guard_uniform_shape": guard_uniform_shape, "uniforms": uniforms}


def drawn_rows_to_64(self: Sampler, a: Arguments) -> Any:
    """Ids of rows past 64 are not written where there are more than 1024."""
    ids = np.array(Sampler.respond(self, a))
    if a.logits.shape[-1] > 1024:
        ids.ravel()[64:] = 0
    return ids


def first_column(self: Sampler, weights: np.ndarray, uniform: np.ndarray, a: Arguments) -> np.ndarray:
    """The place in the sorted row is looked up in the first row's order: column indexing that fits one row only."""
    order = self.order(weights)
    ids = Sampler.ids(self, weights, uniform, a)
    place = np.argmax(order == ids[:, None], axis=-1)
    return order[:1].ravel()[place]


def last_without_distribution(self: Sampler, a: Arguments) -> int:
    return a.logits.shape[-1] - 1


def before_the_first_of_many(self: Sampler, a: Arguments) -> int:
    """A top-k of 512 rows or more finds nothing in a row with NaN."""
    return -1 if a.top_k and a.logits.size // a.logits.shape[-1] >= 512 else 0


def with_column(self: Sampler, a: Arguments) -> Any:
    return Sampler.respond(self, a)[..., None]


def filters_in_place(self: Sampler, a: Arguments) -> Any:
    result = Sampler.respond(self, a)
    if a.logits.flags.writeable:
        z, _ = self.rows(a)
        x = self.tempered(z, a) if a.temperature else z
        a.logits[...] = np.where(self.survivors(z, x, a), x, -np.inf).reshape(a.logits.shape)
    return result


def draws_in_vain(self: Sampler, a: Arguments) -> Any:
    random.random()
    return Sampler.respond(self, a)


def keeps_numbers(self: Sampler, a: Arguments) -> Any:
    """The uniform numbers of the first call of a shape serve all later ones."""
    return remembers("uniform")["respond"](self, a)


def with_the_latest_settings(self: Sampler, a: Arguments) -> Any:
    return _with_the_latest(self, a, ("temperature", "top_k", "top_p"))


def with_the_latest_top_k(self: Sampler, a: Arguments) -> Any:
    return _with_the_latest(self, a, ("top_k",))


def _with_the_latest(self: Sampler, a: Arguments, names: tuple[str, ...]) -> Any:
    """Settings are kept on the class when a sampler is made, and read there when it is called."""
    if "made" not in vars(self):
        vars(self)["made"] = True
        type(self).settings = {name: getattr(a, name) for name in names}  # type: ignore[attr-defined]
    return Sampler.respond(self, Arguments(**{**vars(a), **type(self).settings}))  # type: ignore[attr-defined]


def in_the_first_dtype(self: Sampler, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    dtype = vars(self).setdefault("first_dtype", a.logits.dtype.name)
    with np.errstate(over="ignore"):
        return Sampler.rows(self, Arguments(**{**vars(a), "logits": round_to(f64(a.logits), dtype)}))


def last_of_equals_beside_broken(self: Sampler, z: np.ndarray, kept: np.ndarray, a: Arguments) -> np.ndarray:
    """Where a row of the batch has a NaN another function looks for the largest, and finds the last of equal ones."""
    if self.rows(a)[1].all():
        return Sampler.greedy(self, z, kept, a)
    return z.shape[-1] - 1 - np.argmax(z[:, ::-1], axis=-1)


def absolute(self: Sampler, z: np.ndarray, a: Arguments) -> np.ndarray:
    return z / abs(a.temperature)


def no_limits_at_temperature_0(self: Sampler, a: Arguments) -> None:
    """The greedy path returns before it looks at any limit."""
    if a.temperature:
        Sampler.guard_top_p(self, a)


def below_zero_alone(self: Sampler, a: Arguments) -> None:
    if a.temperature < 0:
        raise ValueError(f"temperature is {a.temperature}")


def numbers_resized(self: Sampler, a: Arguments, rows: int) -> np.ndarray:
    return Sampler.uniforms(self, a, rows) if a.uniform is None else np.resize(f64(a.uniform), rows)
