"""Affine group-wise quantisation in MLX: rows of weights as 2-, 4- or 8-bit codes, packed as MLX stores them.

Every group of `group_size` neighbours in a row shares a scale and a bias: weight = code · scale + bias. Codes lie in
uint32 words, the first one in the lowest bits, so that weight j of a row is in word j·bits // 32. Products take our own kernels: with 4-bit weights where there is Metal, with 4 and 8 bits on CPUs.
"""

from __future__ import annotations

import mlx.core as mx

from inferspec.impl.kernels import metal
from inferspec.impl.kernels import quantized as kernel
from inferspec.impl.kernels.cpu import quantized as cpu_kernel
from inferspec.impl.kernels.cpu.transforms import transformable
from inferspec.impl.linear import require_floating
from inferspec.impl.tokens import ids_of

GROUP_SIZES = (32, 64, 128)
BITS = (2, 4, 8)


def quantize(w: mx.array, group_size: int = 128, bits: int = 4) -> tuple[mx.array, mx.array, mx.array]:
    """Return (packed, scales, biases) of the weights, each off by at most half a step of its group's grid.

    w: N..×I, the range of each group finite. Result: packed N..×(I·bits/32) uint32, scales and biases
    N..×(I/group_size) in the dtype of w. The grid runs from the smallest weight of a group to its largest; the scale is
    rounded up, so that no weight lies outside. Raises TypeError for weights that are not floating-point, ValueError
    for a group size or number of bits that is not offered and for an I that is not a multiple of the group size.
    """
    _require_grid(group_size, bits)
    require_floating("w", w)
    if w.ndim < 1 or w.shape[-1] % group_size:
        raise ValueError(f"w is {w.shape}; group_size={group_size} takes N..×(a multiple of {group_size})")
    levels = 2**bits - 1
    groups = w.astype(mx.float32).reshape(*w.shape[:-1], w.shape[-1] // group_size, group_size)
    if not w.size:
        groups = mx.zeros((*groups.shape[:-1], 1))
    low, high = groups.min(axis=-1), groups.max(axis=-1)
    # Divided before they are subtracted: the range of finite weights may overflow.
    scales = _rounded_up(high / levels - low / levels, w.dtype)
    step = scales.astype(mx.float32)
    step = mx.where(step > 0, step, 1)[..., None]
    codes = mx.clip(mx.round((groups - low[..., None]) / step), 0, levels).astype(mx.uint32)
    return _packed(codes.reshape(w.shape), bits), scales, low.astype(w.dtype)


def dequantize(packed: mx.array, scales: mx.array, biases: mx.array, group_size: int = 128, bits: int = 4) -> mx.array:
    """Return code · scale + bias, evaluated in float32 and rounded once to the dtype of the scales.

    packed: N..×(I·bits/32) uint32; scales, biases: N..×(I/group_size). Result: N..×I.
    Raises TypeError for arrays of another kind, ValueError for shapes that do not belong together and for a group
    size or number of bits that is not offered.
    """
    shape = _require_parts(packed, scales, biases, group_size, bits)
    if not packed.size:
        return mx.zeros(shape, scales.dtype)

    def plain(scales: mx.array, biases: mx.array) -> mx.array:
        wide = mx.dequantize(
            packed.reshape(-1, packed.shape[-1]),
            scales.astype(mx.float32).reshape(-1, scales.shape[-1]),
            biases.astype(mx.float32).reshape(-1, biases.shape[-1]),
            group_size=group_size,
            bits=bits,
        )
        return wide.astype(scales.dtype).reshape(shape)

    if not cpu_kernel.runs(bits, scales, biases):
        return plain(scales, biases)

    def fast(scales: mx.array, biases: mx.array) -> mx.array:
        return cpu_kernel.launch_rows(None, packed, scales, biases, group_size, bits, scales.dtype)

    return transformable(fast, plain, constants=[packed])(scales, biases)


def quantized_matmul(
    x: mx.array,
    packed: mx.array,
    scales: mx.array,
    biases: mx.array,
    group_size: int = 128,
    bits: int = 4,
    transpose: bool = True,
) -> mx.array:
    """Return x · wᵀ (or x · w for transpose=False) for the weights w: O×I that the parts stand for.

    x: N..×I (transpose) or N..×O; packed: O×(I·bits/32) uint32; scales, biases: O×(I/group_size). Result: N..×O
    (transpose) or N..×I in the dtype of x, computed in float32 and rounded once. Parts may have leading dims of their
    own, which are broadcast with those of x. Raises TypeError for arrays of another kind, ValueError for shapes that do
    not fit and for a group size or number of bits that is not offered.
    """
    return _product(x, packed, scales, biases, group_size, bits, transpose, x.dtype)


class QuantizedLinear:
    """A linear layer whose weight O×I is quantised; takes the place of a dense one.

    packed: O×(I·bits/32) uint32; scales, biases: O×(I/group_size); bias: O or None. Raises as `dequantize` does.
    """

    def __init__(
        self,
        packed: mx.array,
        scales: mx.array,
        biases: mx.array,
        group_size: int = 128,
        bits: int = 4,
        bias: mx.array | None = None,
    ) -> None:
        _require_parts(packed, scales, biases, group_size, bits, matrix=True)
        if bias is not None:
            require_floating("bias", bias)
            if bias.shape != packed.shape[:1]:
                raise ValueError(f"bias is {bias.shape}; packed rows {packed.shape[0]} take {packed.shape[:1]}")
        self.packed, self.scales, self.biases = packed, scales, biases
        self.group_size, self.bits, self.bias = group_size, bits, bias

    def __call__(self, x: mx.array) -> mx.array:
        """Return x · wᵀ + bias: N..×O in the dtype of x, for x: N..×I; computed in float32 and rounded once."""
        dtype = x.dtype if self.bias is None else mx.float32
        product = _product(x, self.packed, self.scales, self.biases, self.group_size, self.bits, True, dtype)
        return product if self.bias is None else (product + self.bias.astype(mx.float32)).astype(x.dtype)


class QuantizedEmbedding:
    """A table of one quantised row per token, V×E, which is also the output head of tied models.

    packed: V×(E·bits/32) uint32; scales, biases: V×(E/group_size). Raises as `dequantize` does.
    """

    def __init__(
        self, packed: mx.array, scales: mx.array, biases: mx.array, group_size: int = 128, bits: int = 4
    ) -> None:
        _require_parts(packed, scales, biases, group_size, bits, matrix=True)
        self.packed, self.scales, self.biases = packed, scales, biases
        self.group_size, self.bits = group_size, bits

    @property
    def dtype(self) -> mx.Dtype:
        """Of the rows."""
        return self.scales.dtype

    def __call__(self, tokens: mx.array) -> mx.array:
        """Return the rows of the tokens: T..×E in the dtype of the scales, for integer ids of any shape T...

        Raises TypeError when tokens are not integers, ValueError when an id is outside 0 … V - 1 (which evaluates and
        waits for `tokens`: MLX reads out of bounds without a word).
        """
        ids_of(tokens, self.packed.shape[0])
        grid = self.group_size, self.bits

        def plain(scales: mx.array, biases: mx.array) -> mx.array:
            return dequantize(self.packed[tokens], scales[tokens], biases[tokens], *grid)

        if not (tokens.size and self.packed.size and cpu_kernel.runs(self.bits, self.scales, self.biases)):
            return plain(self.scales, self.biases)

        def fast(scales: mx.array, biases: mx.array) -> mx.array:
            return cpu_kernel.launch_rows(tokens, self.packed, scales, biases, *grid, self.dtype)

        return transformable(fast, plain, constants=[self.packed, tokens])(self.scales, self.biases)

    def as_linear(self, x: mx.array) -> mx.array:
        """Return the logits x · tableᵀ: N..×V in the dtype of x, for x: N..×E."""
        return quantized_matmul(x, self.packed, self.scales, self.biases, self.group_size, self.bits)


def _product(
    x: mx.array,
    packed: mx.array,
    scales: mx.array,
    biases: mx.array,
    group_size: int,
    bits: int,
    transpose: bool,
    dtype: mx.Dtype,
) -> mx.array:
    """The product in the dtype asked for, computed in float32: MLX's CPU kernels accumulate in the dtype of x."""
    *_, outputs, features = _require_parts(packed, scales, biases, group_size, bits, matrix=True)
    require_floating("x", x)
    summed, kept = (features, outputs) if transpose else (outputs, features)
    if x.ndim < 1 or x.shape[-1] != summed:
        raise ValueError(
            f"x is {x.shape}; weights of {(outputs, features)} with transpose={transpose} take N..×{summed}"
        )
    if packed.ndim > 2:
        if x.ndim == 1:
            return _product(x[None], packed, scales, biases, group_size, bits, transpose, dtype)[..., 0, :]
        # MLX broadcasts the parts to x, not x to the parts; the kernels broadcast neither.
        leading = mx.broadcast_shapes(x.shape[:-2], packed.shape[:-2])
        x, packed, scales, biases = (
            mx.broadcast_to(part, (*leading, *part.shape[-2:])) for part in (x, packed, scales, biases)
        )
    if not x.size or not packed.size:
        # MLX divides by the number of rows.
        return mx.zeros((*x.shape[:-1], kept), dtype)
    if bits == kernel.BITS and metal.runs(x, scales, biases):
        return kernel.launch(x, packed, scales, biases, group_size, transpose, dtype)

    def plain(x: mx.array, scales: mx.array, biases: mx.array) -> mx.array:
        x, scales, biases = (part.astype(mx.float32) for part in (x, scales, biases))
        product = mx.quantized_matmul(x, packed, scales, biases, transpose=transpose, group_size=group_size, bits=bits)
        return product.astype(dtype)

    if not cpu_kernel.runs(bits, x, scales, biases):
        return plain(x, scales, biases)

    def fast(x: mx.array, scales: mx.array, biases: mx.array) -> mx.array:
        return cpu_kernel.launch(x, packed, scales, biases, group_size, bits, transpose, dtype)

    return transformable(fast, plain, constants=[packed])(x, scales, biases)


def _rounded_up(steps: mx.array, dtype: mx.Dtype) -> mx.array:
    """Round non-negative float32 numbers to the dtype, never down."""
    near = steps.astype(dtype)
    if dtype == mx.float32:
        return near
    following = (near.view(mx.uint16) + 1).view(dtype)
    return mx.where(near.astype(mx.float32) < steps, following, near)


def _packed(codes: mx.array, bits: int) -> mx.array:
    """Codes N..×I in words N..×(I·bits/32), the first one in the lowest bits."""
    each = 32 // bits
    words = codes.reshape(*codes.shape[:-1], codes.shape[-1] // each, each)
    return (words << mx.arange(0, 32, bits, dtype=mx.uint32)).sum(axis=-1)


def _require_grid(group_size: int, bits: int) -> None:
    if group_size not in GROUP_SIZES:
        raise ValueError(f"group_size is {group_size}; it takes one of {GROUP_SIZES}")
    if bits not in BITS:
        raise ValueError(f"bits is {bits}; it takes one of {BITS}")


def _require_parts(
    packed: mx.array, scales: mx.array, biases: mx.array, group_size: int, bits: int, matrix: bool = False
) -> tuple[int, ...]:
    """The shape of the weights that the parts stand for; an error when they do not belong together."""
    _require_grid(group_size, bits)
    if packed.dtype != mx.uint32:
        raise TypeError(f"packed is {packed.dtype}; it takes uint32")
    for name, part in (("scales", scales), ("biases", biases)):
        require_floating(name, part)
    if packed.ndim < 1 + matrix:
        raise ValueError(f"packed is {packed.shape}; it takes {'O×words' if matrix else 'N..×words'}")
    features = packed.shape[-1] * 32 // bits
    if features % group_size:
        raise ValueError(
            f"packed is {packed.shape}, {features} features; group_size={group_size} takes a multiple of it"
        )
    grid = (*packed.shape[:-1], features // group_size)
    for name, part in (("scales", scales), ("biases", biases)):
        if part.shape != grid:
            raise ValueError(f"{name} is {part.shape}; a packed of {packed.shape} takes {grid}")
    return (*packed.shape[:-1], features)
