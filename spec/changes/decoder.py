"""The steps that faults and honest variants have in the place of the oracle's: see `spec/faults/decoder.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from inferspec.spec.contract import Arguments, Change, Operation
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.stochastic import Exact, Matrix
from inferspec.spec.transformer import Decoder, Memory

MLX, MLX_LM = "https://github.com/ml-explore/mlx", "https://github.com/ml-explore/mlx-lm"


class Path(NamedTuple):
    """What a kernel of attention is chosen by: queries, keys, features of a head, query heads to a key head, dtype."""

    length: int
    keys: int
    dim: int
    ratio: int
    dtype: str


def norm_weights(replaced: Mapping[str, str]) -> Change:
    """Norms of one place use the weight of another."""

    def norm(self: Decoder, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        place = name.rsplit(".", 1)[-1]
        return Decoder.norm(self, x, name.replace(place, replaced.get(place, place)), a, m)

    return {"norm": norm}


def first_row_turned(single: bool) -> Change:
    """Only the first sequence of a batch is turned by its position: always, or where there is one token."""

    def turn(self: Decoder, x: np.ndarray, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        turned = Decoder.turn(self, x, positions, a, m)
        if not single or x.shape[3] == 1:
            turned[:, 1:] = x[:, 1:]
        return turned

    return {"turn": turn}


def window(size: int) -> Change:
    def visible(self: Decoder, length: int, keys: int) -> np.ndarray:
        place = np.arange(length)[:, None] + (keys - length)
        return Decoder.visible(self, length, keys) & (np.arange(keys) > place - size)

    return {"visible": visible}


def packed(change: str) -> Change:
    """One part of the dequantisation is wrong."""

    def matrix(self: Decoder, name: str, a: Arguments) -> Matrix:
        right = Decoder.matrix(self, name, a)
        if not right.quantised:
            return right
        group, bits = self.packing(name, a.config)
        scales, biases = (np.repeat(f64(a.weights[f"{name}.{part}"]), group, -1) for part in ("scales", "biases"))
        codes = self.codes(a.weights[f"{name}.weight"], bits)
        value = codes * {"scale sign": np.abs(scales)}.get(change, scales) + {"biases": 0.0}.get(change, biases)
        return replace(right, value=value)

    return {"matrix": matrix}


def passes_over(stray: Callable[[str, Mapping[str, Any]], bool]) -> Change:
    """Some tensors that have no place are ignored."""

    def guard(self: Decoder, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        kept = {name: x for name, x in a.weights.items() if name in shapes or not stray(name, a.config)}
        Decoder.guard_additional(self, Arguments(**{**vars(a), "weights": kept}), shapes)

    return {"guard_additional": guard}


def unnamed(check: str, of: type[Operation] = Decoder) -> Change:
    """The refusal does not say which tensor it is about."""

    def guard(self: Operation, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        try:
            getattr(of, check)(self, a, shapes)
        except ValueError as error:
            raise ValueError("the weights do not fit the model") from error

    return {check: guard}


def without_bias(*endings: str) -> Change:
    def matrix(self: Decoder, name: str, a: Arguments) -> Matrix:
        right = Decoder.matrix(self, name, a)
        return replace(right, bias=None) if name.endswith(endings) else right

    return {"matrix": matrix}


def path_lacks_a_feature(holds: Callable[[Path], bool]) -> Change:
    """The kernel of one path of attention never writes the last feature of a head."""

    def attend(
        self: Decoder, query: np.ndarray, key: np.ndarray, value: np.ndarray, a: Arguments, m: Exact, *window: Any
    ) -> np.ndarray:
        attended = np.array(Decoder.attend(self, query, key, value, a, m, *window))
        queries, keys = self.heads(a.config)
        if holds(Path(query.shape[-2], key.shape[-2], query.shape[-1], queries // keys, self.result_dtype(a))):
            attended[..., -1] = 0.0
        return attended

    return {"attend": attend}


def packed_path_lacks_an_id(holds: Callable[[int], bool], half: bool = False) -> Callable[..., np.ndarray]:
    """The kernel of packed products for so many tokens does not write the last logit. half: in half precision alone."""

    def forward(self: Decoder, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
        logits = np.array(Decoder.forward(self, tokens, a, m, memory))
        told = a.config.get("quantization")
        of_half = not half or self.result_dtype(a) != "float32"
        if told and told["bits"] == 4 and told["group_size"] == 64 and holds(tokens.shape[1]) and of_half:
            logits[..., -1] = 0.0
        return logits

    return forward


class _Nearest(Exact):
    """Real rounding: activations to the dtype of the model; between them to float32, or to the dtype as well."""

    def __init__(self, dtype: str, native: bool) -> None:
        self.dtype, self.between = dtype, dtype if native else "float32"

    def stored(self, x: np.ndarray) -> np.ndarray:
        return f64(round_to(x, self.dtype))

    def passing(self, x: np.ndarray) -> np.ndarray:
        return f64(round_to(x, self.between))

    def computed(self, x: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32))

    def in_float32(self, x: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32))

    def product(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return f64(x.astype(np.float32) @ y.astype(np.float32))

    def linear(self, x: np.ndarray, matrix: Matrix) -> np.ndarray:
        value = self.product(x, matrix.value.T)
        return value if matrix.bias is None else value + matrix.bias

    def turns(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        angles = angles.astype(np.float32)
        return self.passing(f64(np.cos(angles))), self.passing(f64(np.sin(angles)))


def rounding(native: bool, cached: bool) -> Change:
    """Every operation rounds its result, as an implementation in that arithmetic does."""

    def forward(self: Any, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
        rounding = _Nearest(self.result_dtype(a), native) if type(m) is Exact else m
        return Decoder.forward(self, tokens, a, rounding, memory)

    return {"forward": forward}
