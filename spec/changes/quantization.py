"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/quantization*.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec.changes.linear import rounded
from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.quantization import _Quantised, unpacked


def having(a: Arguments, **changed: Any) -> Arguments:
    return Arguments(**{**vars(a), **changed})


def responding(**changed: Callable[[Any, Arguments], Any]) -> Change:
    """The operation sees other arguments than those it was given."""

    def respond(self: Operation, a: Arguments) -> Any:
        return Operation.respond(self, having(a, **{name: make(self, a) for name, make in changed.items()}))

    return {"respond": respond}


def of_nothing(a: Arguments) -> bool:
    return bool(a.bits <= 0 or a.group_size <= 0)


def refuses_stacks(self: Operation, a: Arguments) -> None:
    if a.packed.ndim != 2:
        raise ValueError(f"packed is {a.packed.shape}, no matrix")


def eight_of_a_stack(self: Operation, a: Arguments) -> Any:
    """The matrices of a stack are counted modulo 8."""
    result = Operation.respond(self, a)

    def wrapped(stack: np.ndarray) -> np.ndarray:
        return stack[np.arange(len(stack)) % 8] if stack.ndim > 2 else stack

    return {part: wrapped(x) for part, x in result.items()} if isinstance(result, dict) else wrapped(result)


# codes, scales and biases: what dequantisation and products share


def nan_to_zero(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    """A weight that is no number is 0."""
    weights = codes * scale + bias
    return np.where(np.isnan(weights), 0.0, weights)


def reversed_places(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    codes = unpacked(packed, bits)
    return codes.reshape(*codes.shape[:-1], -1, 32 // bits)[..., ::-1].reshape(codes.shape)


def high_nibbles_first(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """Of each byte the first code is in the highest bits."""
    codes = unpacked(packed, bits)
    return codes.reshape(*codes.shape[:-1], -1, max(8 // bits, 1))[..., ::-1].reshape(codes.shape)


def split_places(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """Low halves of a word's bytes first, then the high ones, as GGUF's Q4_0 lies."""
    codes = unpacked(packed, bits)
    words = codes.reshape(*codes.shape[:-1], -1, 32 // bits)
    return np.concatenate([words[..., ::2], words[..., 1::2]], axis=-1).reshape(codes.shape)


def swapped_bytes(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    return unpacked(packed.astype(np.uint32).byteswap(), bits)


def signed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    codes = unpacked(packed, bits)
    return np.where(codes >= 2 ** (bits - 1), codes - 2**bits, codes)


def last_place_signed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """The words are int32, and the shift fills the last code up with its sign."""
    codes = unpacked(packed, bits).reshape(*packed.shape, 32 // bits)
    last = codes[..., -1]
    codes[..., -1] = np.where(last >= 2 ** (bits - 1), last - 2**bits, last)
    return codes.reshape(*packed.shape[:-1], -1)


def nibbles_always(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """The mask of 4 bits, whatever the bits: codes of 8 bits lose their upper half."""
    return unpacked(packed, bits) & 15


def top_code_lost(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    return np.minimum(unpacked(packed, bits), 2**bits - 2)


def zero_wraps(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """An offset of one that other formats have, taken modulo 2^bits."""
    return (unpacked(packed, bits) - 1) % 2**bits + 1


def words_transposed(self: Any, packed: np.ndarray, bits: int) -> np.ndarray:
    """A weight lies at the same place of neighbouring words, not in neighbouring places of one."""
    codes = unpacked(packed, bits).reshape(*packed.shape, 32 // bits)
    return codes.swapaxes(-1, -2).reshape(*packed.shape[:-1], -1)


def of_group(index: Callable[[np.ndarray, int, Arguments], np.ndarray]) -> Change:
    """Scales and biases are taken from other groups: index(weight, groups, arguments) -> group."""

    def of_group(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
        groups = part.shape[-1]
        return part[..., index(np.arange(groups * a.group_size), groups, a)]

    return {"of_group": of_group}


def strided_groups(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return weight % groups


def of_4096_columns(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    """What lies past the 4096th column has its group's scale and bias."""
    return np.minimum(weight, 4095) // a.group_size


def of_64_groups(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // a.group_size, 63)


def groups_in_a_byte(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return weight // a.group_size % 256


def next_group(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // a.group_size + 1, groups - 1)


def first_group(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.zeros_like(weight)


def groups_of_64(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.minimum(weight // 64, groups - 1)


def late_by_a_word(weight: np.ndarray, groups: int, a: Arguments) -> np.ndarray:
    return np.maximum(weight - 32 // a.bits, 0) // a.group_size


def groups_down_the_columns(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    """Scales are read as if they lay group after group, not row after row."""
    turned = part.reshape(*part.shape[:-2], part.shape[-1], part.shape[-2]).swapaxes(-1, -2)
    return np.repeat(turned, a.group_size, axis=-1)


def first_row(self: Any, part: np.ndarray, a: Arguments) -> np.ndarray:
    first = np.broadcast_to(part[..., :1, :], part.shape)
    return np.repeat(first, a.group_size, axis=-1)


def bias_subtracted(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * scale - bias


def zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + bias) * scale


def whole_zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + np.rint(bias / np.where(scale == 0, 1.0, scale))) * scale


def through_zero_point(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return (codes + bias / scale) * scale


def size_of_scale(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * np.abs(scale) + bias


def rounded_twice(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(codes * scale, dtype) + bias


def in_bfloat16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return rounded(codes * scale + bias, "bfloat16")


def in_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    return codes * rounded(scale, "float16") + rounded(bias, "float16")


def bfloat16_in_float16(self: Any, codes: np.ndarray, scale: np.ndarray, bias: np.ndarray, dtype: str) -> np.ndarray:
    if dtype != "bfloat16":
        return codes * scale + bias
    with np.errstate(over="ignore"):
        return in_float16(self, codes, scale, bias, dtype)


def shapes_taken_on_trust(self: Any, a: Arguments) -> Any:
    """Whatever belongs together no more is read on or cut short."""
    bits = a.bits if a.bits in (2, 4, 8) else 4
    size = a.group_size if a.group_size in (32, 64, 128) else 32
    words = a.packed if a.packed.dtype == np.uint32 else a.packed.astype(np.float64).astype(np.int64).astype(np.uint32)
    features = max(words.shape[-1] * 32 // bits // size, 1) * size
    words = np.resize(words, (*words.shape[:-1], features * bits // 32))
    grid = (*words.shape[:-1], features // size)
    parts = {part: np.resize(getattr(a, part), grid) for part in ("scales", "biases")}
    changed = having(a, packed=words, bits=bits, group_size=size, **parts)
    if hasattr(a, "x"):
        summed = features if self.transposed(changed) else words.shape[-2]
        changed.x = np.resize(a.x, (*a.x.shape[:-1], summed))
    return Operation.respond(self, changed)


READ_BY_NOTHING: Change = {
    "guard": lambda self, a: None if of_nothing(a) else _Quantised.guard(self, a),
    "respond": lambda self, a: shapes_taken_on_trust(self, a) if of_nothing(a) else Operation.respond(self, a),
}


def _one_bias_for_all(a: Arguments) -> Arguments:
    """Biases of one group are broadcast."""
    groups = a.scales.shape[-1] if a.scales.ndim else 1
    return having(a, biases=np.repeat(a.biases, groups, axis=-1)) if a.biases.shape[-1:] == (1,) else a


BIASES_BROADCAST: Change = {
    "guard_parts": lambda self, a: _Quantised.guard_parts(self, _one_bias_for_all(a)),
    "respond": lambda self, a: Operation.respond(self, _one_bias_for_all(a)),
}


def _one_row_for_all(a: Arguments) -> Arguments:
    """Biases of one row of weights are broadcast."""
    rows = a.packed.shape[-2] if a.packed.ndim > 1 else 1
    return having(a, biases=np.repeat(a.biases, rows, axis=-2)) if a.biases.shape[-2:-1] == (1,) else a


ROW_OF_BIASES_BROADCAST: Change = {
    "guard_parts": lambda self, a: _Quantised.guard_parts(self, _one_row_for_all(a)),
    "respond": lambda self, a: Operation.respond(self, _one_row_for_all(a)),
}


def guarded(*checks: str) -> Change:
    """All is refused but what these checks are for."""
    return {check: lambda self, a: None for check in checks}


ALL_CHECKS = ("guard_grid", "guard_words", "guard_parts", "guard_rest")


def flattened(self: Any, a: Arguments) -> Any:
    """A stack of matrices is read as its first one, over and over."""
    result = Operation.respond(self, a)
    return np.broadcast_to(result[:1], result.shape).copy() if result.ndim > 2 else result


def rows_of_result_in_16_bits(out: np.ndarray) -> np.ndarray:
    return out[: 2**15]


def whole_rows_of_8(out: np.ndarray) -> np.ndarray:
    return out[: len(out) // 8 * 8] if len(out) > 8 else out


def table_as_most_are_packed(a: Arguments) -> bool:
    """Whether a matrix of many rows and of 8 groups of 64 and more is packed in 4 bits."""
    grid = a.scales.shape
    return a.bits == 4 and a.group_size == 64 and len(grid) == 2 and grid[0] >= 64 <= 8 * grid[1]


def last_group_unwritten(self: Operation, a: Arguments) -> Any:
    """The last scale and bias of each row are zeros, where a matrix of models is packed as most are."""
    found = Operation.respond(self, a)
    if (
        a.bits == 4
        and a.group_size == 64
        and a.w.dtype.itemsize == 2
        and a.w.ndim == 2
        and min(a.w.shape) >= 64
        and a.w.shape[-1] >= 512
    ):
        for part in ("scales", "biases"):
            found[part] = np.array(found[part])
            found[part][..., -1] = 0
    return found


def last_group_of_hundreds_unwritten(self: Operation, a: Arguments) -> Any:
    """The last scale and bias of each row are zeros, of 512 rows and 4 groups and more."""
    found = Operation.respond(self, a)
    if a.w.ndim == 2 and len(a.w) >= 512 and a.w.shape[-1] >= 4 * a.group_size:
        for part in ("scales", "biases"):
            found[part] = np.array(found[part])
            found[part][..., -1] = 0
    return found


# layers and embeddings


def added_to_first_row(self: Any, product: np.ndarray, bias: np.ndarray) -> np.ndarray:
    rows = product.reshape(-1, product.shape[-1]).copy()
    rows[:1] += bias
    return rows.reshape(product.shape)


def fitted(a: Arguments) -> np.ndarray:
    return np.resize(a.x, (*a.x.shape[:-1], a.packed.shape[-1] * 32 // a.bits))


def bias_fitted(a: Arguments) -> Any:
    return None if a.bias is None else np.resize(a.bias, a.packed.shape[0])
