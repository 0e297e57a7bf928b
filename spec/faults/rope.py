"""What goes wrong in rotary position embeddings, and other honest ways to compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from inferspec.spec import rope as contract
from inferspec.spec.contract import Arguments, Fault, Variant
from inferspec.spec.mistakes import (
    bfloat16_through_float16,
    counts_rows_in_16_bits,
    drifts,
    ignores_strides,
    leaves_unwritten,
    mutates,
    only_where,
    promotes,
    remembers,
)
from inferspec.spec.numerics import Precision, f64, round_to

Pair = tuple[np.ndarray, np.ndarray]
RoPE = contract.RoPE
TIRED = "tired engineer"
TINY_LLM = "course code written from the text"
MLX = "https://github.com/ml-explore/mlx/commit/"


def _always(traditional: bool) -> dict[str, Callable[..., Any]]:
    """Whatever form is asked for, this one is taken."""

    def features(self: RoPE, dims: int, a: Arguments) -> Pair:
        return RoPE.features(self, dims, Arguments(**{**vars(a), "traditional": traditional}))

    return {"features": features}


def _angle(wrong: Callable[[np.ndarray, np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """Angles from positions (B×L×1×1), frequencies and the arguments."""
    return {"angles": lambda self, positions, frequencies, a: wrong(positions[:, :, None, None], frequencies, a)}


def _position(wrong: Callable[[np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """Positions from the right ones and the arguments."""
    return {"positions": lambda self, a: wrong(RoPE.positions(self, a), a)}


def _start(wrong: Callable[[Any, int, int], int]) -> dict[str, Callable[..., Any]]:
    """The first position, from the offset, the length and the right answer."""
    return {"start": lambda self, offset, length: wrong(offset, length, RoPE.start(self, offset, length))}


def _starts(wrong: Callable[[np.ndarray, Arguments], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """The rows' first positions, from the right ones and the arguments."""
    return {"starts": lambda self, a: wrong(RoPE.starts(self, a), a)}


def _narrow(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return f64(round_to(x, dtype))


def _significant(x: np.ndarray, bits: int) -> np.ndarray:
    """Round to so many significant bits, with the range of float32."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent)


def _overwritten_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    first = first * cos - second * sin
    return first, first * sin + second * cos


def _tiled_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    if not a.traditional:
        return RoPE.turn(self, first, second, cos, sin, a)
    cos, sin = np.concatenate([cos, cos], axis=-1), np.concatenate([sin, sin], axis=-1)
    return first * cos[..., ::2] - second * sin[..., ::2], first * sin[..., 1::2] + second * cos[..., 1::2]


def _at_most_256_of_large_heads(positions: np.ndarray, a: Arguments) -> np.ndarray:
    return np.minimum(positions, positions[:, :1] + 255) if a.x.shape[3] >= 64 else positions


def _previous_for_zero(starts: np.ndarray, a: Arguments) -> np.ndarray:
    if not isinstance(a.offset, list):
        return starts
    rows = starts.copy()
    for row in range(1, len(rows)):
        rows[row] = rows[row] or rows[row - 1]
    return rows


def _rows(wrong: Callable[[np.ndarray], np.ndarray]) -> dict[str, Callable[..., Any]]:
    """The rows' first positions go wrong where they are given as a list."""
    return _starts(lambda starts, a: wrong(starts) if isinstance(a.offset, list) and len(starts) else starts)


def _single_token_first_row(positions: np.ndarray, a: Arguments) -> np.ndarray:
    rows = np.arange(len(positions))[:, None]
    return np.where((rows > 0) & (a.x.shape[1] == 1), 0.0, positions)


def _flat_tokens(positions: np.ndarray, a: Arguments) -> np.ndarray:
    return positions + np.arange(a.x.shape[0])[:, None] * a.x.shape[1]


def _by_head(positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
    return (positions[:, :1] + np.arange(a.x.shape[2])[:, None]) * frequencies


def _poor_pi(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    reduced = angles - np.round(angles / 6.28318) * 6.28318
    return np.cos(reduced), np.sin(reduced)


def _grown_base(self: RoPE, a: Arguments) -> float:
    return float(a.base) * max(a.x.shape[1], 1)


def _last_features(self: RoPE, dims: int, a: Arguments) -> Pair:
    first, second = RoPE.features(self, dims, a)
    tail = a.x.shape[-1] - dims
    return first + tail, second + tail


def _zero_tail(self: RoPE, x: np.ndarray, dims: int) -> np.ndarray:
    return np.zeros_like(x)


def _even_within(self: RoPE, a: Arguments) -> int:
    return min(a.dims, a.x.shape[-1]) // 2 * 2


def _cycled_starts(self: RoPE, a: Arguments) -> np.ndarray:
    if not isinstance(a.offset, list):
        return RoPE.starts(self, a)
    return np.resize([self.start(offset, a.x.shape[1]) for offset in a.offset or [0]], a.x.shape[0])


def _whole(axis: int, group: int) -> Callable[[np.ndarray], np.ndarray]:
    """The elements in whole groups along an axis, or all where there is none."""

    def keep(result: np.ndarray) -> np.ndarray:
        size = result.shape[axis]
        kept = size // group * group or size
        return result[(slice(None),) * axis + (slice(kept),)]

    return keep


FAULTS: tuple[Fault, ...] = (
    Fault("rope-bfloat16-through-float16", "bfloat16 passes through float16 before it is turned", contract.ROPE_01, bfloat16_through_float16("x"), TIRED),
    Fault("rope-turns-backwards", "the sign of the sine is wrong: tokens turn by -position", contract.ROPE_01, {"coefficients": lambda self, angles, a: (np.cos(angles), -np.sin(angles))}, TIRED),
    Fault("rope-halves-swapped", "the two halves of the result are exchanged", contract.ROPE_01, {"places": lambda self, dims, a: RoPE.features(self, dims, a)[::-1]}, TIRED),
    Fault("rope-interleaved-for-split-half", "pairs are neighbours, whatever form is asked for", contract.ROPE_01, _always(True), TINY_LLM),
    Fault("rope-minus-missing", "rotate_half forgets the minus", contract.ROPE_01, {"turn": lambda self, x, y, cos, sin, a: (x * cos + y * sin, x * sin + y * cos)}, TIRED),
    Fault("rope-cosine-sine-exchanged", "cosine and sine are exchanged", contract.ROPE_01, {"coefficients": lambda self, angles, a: (np.sin(angles), np.cos(angles))}, TIRED),
    Fault("rope-overwritten-first", "the second feature is computed from the first one's new value", contract.ROPE_01, {"turn": _overwritten_turn}, TIRED),
    Fault("rope-exponent-halved", "the exponent is i / dims, not 2i / dims", contract.ROPE_01, {"exponents": lambda self, dims, a: np.arange(dims // 2) / dims}, TINY_LLM),
    Fault("rope-exponent-from-one", "frequencies start with the second one", contract.ROPE_01, {"exponents": lambda self, dims, a: np.arange(2, dims + 2, 2) / dims}, TIRED),
    Fault("rope-frequencies-reversed", "the frequencies are in reverse order", contract.ROPE_01, {"frequencies": lambda self, dims, a: RoPE.frequencies(self, dims, a)[::-1]}, TIRED),
    Fault("rope-turned-twice", "the rotation is applied twice", contract.ROPE_01, _angle(lambda p, f, a: 2 * p * f), TIRED),
    Fault("rope-split-half-for-traditional", "pairs are half a head apart, whatever form is asked for", contract.ROPE_02, _always(False), TINY_LLM),
    Fault("rope-not-interleaved-back", "turned even and odd features are concatenated instead of interleaved", contract.ROPE_02, {"places": lambda self, dims, a: (np.arange(dims // 2), np.arange(dims // 2, dims))}, "https://github.com/vllm-project/vllm-metal/commit/7e70293"),
    Fault("rope-int-offset-ignored", "an int offset is ignored", contract.ROPE_03, _start(lambda offset, length, right: 0 if isinstance(offset, int) else right), TIRED),
    Fault("rope-offset-hard-wired", "the caller's offset is never read; every call starts at 0", contract.ROPE_03, _start(lambda offset, length, right: 0), "https://github.com/flashinfer-ai/flashinfer/commit/1161b1221"),
    Fault("rope-offset-plus-one", "every position is one too large, as when a decode step counts its own token", contract.ROPE_03, _start(lambda offset, length, right: right + 1 if isinstance(offset, int) else right), "https://github.com/GeeeekExplorer/nano-vllm/commit/f5b4840"),
    Fault("rope-offset-minus-one", "decoding is one position early", contract.ROPE_03, _start(lambda offset, length, right: max(right - 1, 0)), TIRED),
    Fault("rope-offset-for-prefill-only", "a single token always sits at position 0", contract.ROPE_03, _start(lambda offset, length, right: right if length > 1 else 0), TIRED),
    Fault("rope-offset-for-decode-only", "several tokens always start at position 0", contract.ROPE_03, _start(lambda offset, length, right: right if length == 1 else 0), TIRED),
    Fault("rope-offset-frozen", "every token of a call sits at the offset", contract.ROPE_03, _position(lambda p, a: np.broadcast_to(p[:, :1], p.shape)), TIRED),
    Fault("rope-slice-stop", "a slice counts from its stop", contract.ROPE_04, _start(lambda offset, length, right: offset.stop if isinstance(offset, slice) else right), TIRED),
    Fault("rope-slice-ignored", "a slice is taken for None", contract.ROPE_04, _start(lambda offset, length, right: 0 if isinstance(offset, slice) else right), TINY_LLM),
    Fault("rope-slice-last-position", "a slice counts from its last position", contract.ROPE_04, _start(lambda offset, length, right: offset.stop - 1 if isinstance(offset, slice) else right), TIRED),
    Fault("rope-first-row-positions", "every batch row gets the positions of the first", contract.ROPE_05, _rows(lambda starts: np.full_like(starts, starts[0])), "https://github.com/linkedin/Liger-Kernel/commit/d7c78df1"),
    Fault("rope-rows-shifted", "batch rows get the positions of their neighbour", contract.ROPE_05, _rows(lambda starts: np.roll(starts, 1)), TIRED),
    Fault("rope-rows-sorted", "the rows' positions are sorted before use", contract.ROPE_05, _rows(np.sort), TIRED),
    Fault("rope-rows-distinct", "equal slices of a list are merged, so later rows get the wrong ones", contract.ROPE_05, _rows(lambda starts: np.resize(list(dict.fromkeys(starts.tolist())), len(starts))), TIRED),
    Fault("rope-zero-is-missing", "a row at position 0 takes the previous row's position", contract.ROPE_05, _starts(_previous_for_zero), TIRED),
    Fault("rope-list-longest", "every batch row starts where the longest does", contract.ROPE_05, _rows(lambda starts: np.full_like(starts, starts.max())), TIRED),
    Fault("rope-base-hard-wired", "the base is always 10000", contract.ROPE_06, {"base": lambda self, a: 10000.0}, TINY_LLM),
    Fault("rope-base-ignored-when-traditional", "the traditional form always has base 10000", contract.ROPE_06, {"base": lambda self, a: 10000.0 if a.traditional else float(a.base)}, TIRED),
    Fault("rope-base-in-bfloat16", "the base is rounded to bfloat16", contract.ROPE_06, {"base": lambda self, a: float(_narrow(np.array(a.base), "bfloat16"))}, TIRED),
    Fault("rope-base-capped", "a base above the largest float16 is cut down to it", contract.ROPE_06, {"base": lambda self, a: min(float(a.base), 65504.0)}, TIRED),
    Fault("rope-positions-in-input-dtype", "positions are kept in the dtype of x", contract.ROPE_07, _position(lambda p, a: _narrow(p, a.x.dtype.name)), f"{MLX}f46877bc0"),
    Fault("rope-positions-in-bfloat16", "positions are kept in bfloat16", contract.ROPE_07, _position(lambda p, a: _narrow(p, "bfloat16")), "https://github.com/huggingface/candle/pull/3520"),
    Fault("rope-frequencies-in-bfloat16", "the inverse frequencies were cast to bfloat16 with the model", contract.ROPE_07, {"frequencies": lambda self, dims, a: _narrow(RoPE.frequencies(self, dims, a), "bfloat16")}, "https://github.com/huggingface/transformers/issues/29496"),
    Fault("rope-frequencies-in-input-dtype", "the frequencies are in the dtype of x", contract.ROPE_07, {"frequencies": lambda self, dims, a: _narrow(RoPE.frequencies(self, dims, a), a.x.dtype.name)}, f"{MLX}f46877bc0"),
    Fault("rope-long-calls-of-large-heads", "with heads of 64 features and more, tokens past the 256th of a call are at the position of that one", contract.ROPE_07, _position(_at_most_256_of_large_heads), "PROPERTIES X2, X8"),
    Fault("rope-angles-in-float16", "angles are in float16", contract.ROPE_07, _angle(lambda p, f, a: _narrow(p * f, "float16")), TIRED),
    Fault("rope-angles-in-bfloat16", "angles are in bfloat16", contract.ROPE_07, _angle(lambda p, f, a: _narrow(p * f, "bfloat16")), f"{MLX}f46877bc0"),
    Fault("rope-angles-in-tf32", "angles come from a matrix product that runs at TF32 (11 significant bits)", contract.ROPE_07, _angle(lambda p, f, a: _significant(p, 11) * _significant(f, 11)), "MLX_ENABLE_TF32"),
    Fault("rope-fast-trigonometry", "fast sine and cosine lose accuracy away from 0", contract.ROPE_07, {"coefficients": _poor_pi}, "https://github.com/kekzl/imp/pull/1325"),
    Fault("rope-starts-at-one", "positions count from 1 where no offset is given", contract.ROPE_08, _start(lambda offset, length, right: 1 if offset is None else right), TIRED),
    Fault("rope-identity-scaled", "cosine and sine carry an attention factor, at position 0 too", contract.ROPE_08, {"coefficients": lambda self, angles, a: (1.25 * np.cos(angles), 1.25 * np.sin(angles))}, "https://github.com/ml-explore/mlx-lm/commit/2146e4ed"),
    Fault("rope-norm-shrinks", "rotated pairs lose length as the position grows", contract.ROPE_09, {"coefficients": lambda self, angles, a: (np.cos(angles) * np.exp(-np.abs(angles) / 4), np.sin(angles) * np.exp(-np.abs(angles) / 4))}, TIRED),
    Fault("rope-positions-in-steps", "positions are rounded down to even ones", contract.ROPE_09, _position(lambda p, a: p // 2 * 2), TIRED),
    Fault("rope-positions-logarithmic", "angles grow with the logarithm of the position", contract.ROPE_09, _angle(lambda p, f, a: np.log1p(p) * f), TIRED),
    Fault("rope-traditional-tiled", "the traditional form takes its frequencies in the order of the split-half form", contract.ROPE_10, {"turn": _tiled_turn}, TIRED),
    Fault("rope-position-from-head", "the head's index is taken for the token's", contract.ROPE_11, _angle(_by_head), TIRED),
    Fault("rope-positions-run-on", "positions run on from one batch row into the next", contract.ROPE_11, _position(_flat_tokens), TIRED),
    Fault("rope-positions-by-head-count", "positions are counted in heads, not in tokens", contract.ROPE_11, _angle(lambda p, f, a: p * a.x.shape[2] * f), TIRED),
    Fault("rope-single-token-first-row", "with one token per row only the first batch row turns", contract.ROPE_11, _position(_single_token_first_row), f"{MLX}76a977ca4"),
    Fault("rope-turns-all", "all features turn, not the first dims", contract.ROPE_12, {"dims": lambda self, a: a.x.shape[-1] // 2 * 2}, "https://github.com/ml-explore/mlx-lm/commit/cff94b7f"),
    Fault("rope-tail-zero", "the features that do not turn are zero", contract.ROPE_12, {"kept": _zero_tail}, TIRED),
    Fault("rope-head-dim-frequencies", "frequencies are those of the whole head", contract.ROPE_12, {"exponents": lambda self, dims, a: np.arange(0, dims, 2) / a.x.shape[-1]}, TIRED),
    Fault("rope-turns-last", "the last dims features turn, not the first", contract.ROPE_12, {"features": _last_features}, TIRED),
    Fault("rope-table-clamps", "positions past the table stay at its last row", contract.ROPE_13, _position(lambda p, a: np.minimum(p, a.max_positions - 1)), "seen in course code: a silent clamp"),
    Fault("rope-table-wraps", "positions past the table start again at 0", contract.ROPE_13, _position(lambda p, a: p % a.max_positions), TIRED),
    Fault("rope-table-ends", "positions past the table read zeros and ones: nothing turns", contract.ROPE_13, _position(lambda p, a: np.where(p < a.max_positions, p, 0)), TINY_LLM),
    Fault("rope-base-grows-with-length", "the base grows with the number of tokens of the call", contract.ROPE_14, {"base": _grown_base}, "dynamic NTK scaling, applied where it is not asked for"),
    Fault("rope-offset-in-blocks", "the offset is rounded down to a multiple of the call's length", contract.ROPE_14, _start(lambda offset, length, right: right // max(length, 1) * length), TIRED),
    Fault("rope-ignores-strides", "x is read as if it were contiguous", contract.ROPE_15, ignores_strides("x"), f"{MLX}d40e76809"),
    Fault("rope-promotes", "the result is float32", contract.ROPE_16, promotes(), TINY_LLM),
    Fault("rope-changes-x", "x is scaled in place", contract.ROPE_17, mutates("x"), "https://github.com/ml-explore/mlx-lm/commit/2146e4ed"),
    Fault("rope-changes-single-tokens", "past the prompt single tokens in float32 are turned in place", contract.ROPE_17, only_where(lambda a: a.x.shape[1] == 1 and a.x.dtype == np.float32 and a.offset is not None, mutates("x")), TIRED),
    Fault("rope-single-tokens-strides", "the path of single tokens reads x as if it were contiguous", contract.ROPE_15, only_where(lambda a: a.x.shape[1] == 1, ignores_strides("x")), TIRED),
    Fault("rope-remembers-single-tokens", "of single tokens results are kept without x in their key", contract.ROPE_18, only_where(lambda a: a.x.shape[1] == 1, remembers("x")), TIRED),
    Fault("rope-remembers-base", "tables are kept without the base in their key", contract.ROPE_18, remembers("base"), TIRED),
    Fault("rope-remembers-offset", "tables are kept without the offset in their key", contract.ROPE_18, remembers("offset"), TIRED),
    Fault("rope-remembers-dims", "tables are kept without dims in their key", contract.ROPE_18, remembers("dims"), f"{MLX}874b739f3"),
    Fault("rope-remembers-form", "the first form used is kept", contract.ROPE_18, remembers("traditional"), TIRED),
    Fault("rope-remembers-result", "results are kept without x in their key", contract.ROPE_18, remembers("x"), TIRED),
    Fault("rope-drifts", "a position counter outlives the call", contract.ROPE_18, drifts(), TIRED),
    Fault("rope-odd-dims", "an odd feature is left over silently", contract.ROPE_19, {"guard_even": lambda self, a: None, "dims": _even_within}, TIRED),
    Fault("rope-too-many-dims", "dims > D is cut down silently", contract.ROPE_19, {"guard_dims": lambda self, a: self.guard_even(a), "dims": _even_within}, TIRED),
    Fault("rope-negative-is-zero", "positions before 0 are taken for 0", contract.ROPE_13, {"guard_sign": lambda self, offset: None, **_position(lambda p, a: np.maximum(p, 0))}, TIRED),
    Fault("rope-negative-from-the-end", "positions before 0 are counted from the end of the table", contract.ROPE_13, {"guard_sign": lambda self, offset: None, **_position(lambda p, a: np.where(p < 0, p + a.max_positions, p))}, "torchtune 0.6.1, RotaryPositionalEmbeddings: the table is indexed with them"),
    Fault("rope-slice-length", "a slice of another length is taken from its start", contract.ROPE_20, {"guard_length": lambda self, offset, length: None}, TIRED),
    Fault("rope-list-length", "a list with too few or too many slices is taken", contract.ROPE_20, {"guard_rows": lambda self, a: None, "starts": _cycled_starts}, TIRED),
    Fault("rope-heads-in-fours", "heads after the last multiple of 4 are never written", contract.ROPE_21, leaves_unwritten(_whole(2, 4)), "kernels that take 4 heads per thread"),
    Fault("rope-heads-in-16-bits", "of all heads of all tokens those past the 65535th are never written", contract.ROPE_21, counts_rows_in_16_bits(), "PROPERTIES X8"),
    Fault("rope-heads-past-64", "heads past the 64th are never written", contract.ROPE_21, leaves_unwritten(lambda out: out[:, :, :64]), "PROPERTIES X2"),
    Fault("rope-tokens-in-tiles", "tokens after the last multiple of 32 are never written", contract.ROPE_21, leaves_unwritten(_whole(1, 32)), TIRED),
)  # fmt: skip


def _f32(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, np.float32)


def _pow_frequencies(self: RoPE, dims: int, a: Arguments) -> np.ndarray:
    return 1 / np.power(np.float32(a.base), _f32(np.arange(0, dims, 2)) / np.float32(dims))


def _exp2_frequencies(self: RoPE, dims: int, a: Arguments) -> np.ndarray:
    return np.exp2(-(_f32(np.arange(dims // 2)) / np.float32(dims // 2)) * np.log2(np.float32(a.base)))


def _exp_frequencies(self: RoPE, dims: int, a: Arguments) -> np.ndarray:
    return np.exp(_f32(np.arange(dims // 2)) * np.float32(-np.log(a.base) / (dims // 2)))


def _float32_angles(self: RoPE, positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
    return _f32(positions)[:, :, None, None] * _f32(frequencies)


def _table(dtype: type[np.floating[Any]]) -> Callable[[RoPE, np.ndarray, np.ndarray, Arguments], np.ndarray]:
    """Angles of a table that is made for every position first; the rows are taken from it."""

    def angles(self: RoPE, positions: np.ndarray, frequencies: np.ndarray, a: Arguments) -> np.ndarray:
        rows = max(a.max_positions, int(positions.max(initial=0)) + 1)
        used, index = np.unique(positions.astype(np.int64), return_inverse=True)
        table = np.outer(np.arange(rows, dtype=dtype)[used], frequencies.astype(dtype))
        return table[index.reshape(positions.shape)][:, :, None, :]

    return angles


def _float32_coefficients(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    return np.cos(_f32(angles)), np.sin(_f32(angles))


def _float64_coefficients(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    return _f32(np.cos(angles)), _f32(np.sin(angles))


def _float32_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    return RoPE.turn(self, _f32(first), _f32(second), _f32(cos), _f32(sin), a)


def _complex_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    turned = (_f32(first) + 1j * _f32(second)).astype(np.complex64) * (_f32(cos) + 1j * _f32(sin)).astype(np.complex64)
    return turned.real, turned.imag


def _rotate_half_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    x = _f32(np.concatenate([first, second], axis=-1))
    half = _f32(np.concatenate([-second, first], axis=-1))
    y = x * _f32(np.concatenate([cos, cos], axis=-1)) + half * _f32(np.concatenate([sin, sin], axis=-1))
    return y[..., : first.shape[-1]], y[..., first.shape[-1] :]


def _native_coefficients(self: RoPE, angles: np.ndarray, a: Arguments) -> Pair:
    cos, sin = _float32_coefficients(self, angles, a)
    return _narrow(cos, a.x.dtype.name), _narrow(sin, a.x.dtype.name)


def _native_turn(
    self: RoPE, first: np.ndarray, second: np.ndarray, cos: np.ndarray, sin: np.ndarray, a: Arguments
) -> Pair:
    def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return _narrow(x * y, a.x.dtype.name)

    return product(first, cos) - product(second, sin), product(first, sin) + product(second, cos)


_FLOAT32: dict[str, Callable[..., Any]] = {
    "frequencies": _exp2_frequencies,
    "angles": _float32_angles,
    "coefficients": _float32_coefficients,
    "turn": _float32_turn,
}
_NATIVE: dict[str, Any] = {**_FLOAT32, "coefficients": _native_coefficients, "turn": _native_turn}

VARIANTS: tuple[Variant, ...] = (
    Variant("rope-float32-exp2", "float32 throughout, frequencies by exp2", "RoPE", _FLOAT32),
    Variant("rope-float32-exp", "float32 throughout, frequencies by exp", "RoPE", {**_FLOAT32, "frequencies": _exp_frequencies}),
    Variant("rope-float32-pow", "float32 throughout, frequencies by pow and a reciprocal", "RoPE", {**_FLOAT32, "frequencies": _pow_frequencies}),
    Variant("rope-complex", "pairs are complex64 numbers and the rotation is a product", "RoPE", {**_FLOAT32, "turn": _complex_turn}),
    Variant("rope-rotate-half", "x · cos + rotate_half(x) · sin, on concatenated halves", "RoPE", {**_FLOAT32, "frequencies": _pow_frequencies, "turn": _rotate_half_turn}),
    Variant("rope-table-float32", "rows of a table computed in float32", "RoPE", {**_FLOAT32, "angles": _table(np.float32)}),
    Variant("rope-table-float64", "rows of a table computed in float64 and kept in float32", "RoPE", {"angles": _table(np.float64), "coefficients": _float64_coefficients, "turn": _float32_turn}),
    Variant("rope-native", "cosine, sine and products rounded to the dtype of x", "RoPE", _NATIVE, Precision.NATIVE),
    Variant("rope-native-table", "a table of cosine and sine in the dtype of x, products rounded to it", "RoPE", {**_NATIVE, "frequencies": RoPE.frequencies, "angles": _table(np.float64)}, Precision.NATIVE),
)  # fmt: skip
