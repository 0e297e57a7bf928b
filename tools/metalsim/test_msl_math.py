"""MSL's functions of numbers against NumPy: exact ones to the bit, the others within MSL's own bound for precise math."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from inferspec.tools.metalsim.snippets import launch, same_bits

pytestmark = pytest.mark.usefixtures("cxx")

MOST_ULPS = 4  # what the MSL specification (8.3) allows precise math for nearly all of these; a C library has 1 or 2
F64 = np.float64


def ulps(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How many units in the last place of float32 the results are off the exact values; 0 where both are the same special."""
    rounded = exact.astype(np.float32)
    special = ~np.isfinite(rounded)
    unit = np.spacing(np.abs(np.where(special, 1, rounded)).astype(np.float32)).astype(F64)
    off = np.abs(found.astype(F64) - exact) / unit
    same = np.where(np.isnan(exact), np.isnan(found), found == rounded)
    return np.where(special, np.where(same, 0, np.inf), off)


def sinpi(x: np.ndarray) -> np.ndarray:
    r = x - 2 * np.round(x / 2)
    return np.sin(np.pi * np.where(np.abs(r) > 0.5, np.sign(r) - r, r))


def cospi(x: np.ndarray) -> np.ndarray:
    r = np.abs(x - 2 * np.round(x / 2))
    return np.where(r == 0.5, 0.0, np.cos(np.pi * r))


WHOLE = (-87.0, 87.0)
ONE = {  # name: (exact function in float64, range of arguments)
    "acos": (np.arccos, (-1, 1)),
    "acosh": (np.arccosh, (1, 1e6)),
    "asin": (np.arcsin, (-1, 1)),
    "asinh": (np.arcsinh, (-1e6, 1e6)),
    "atan": (np.arctan, WHOLE),
    "atanh": (np.arctanh, (-0.999, 0.999)),
    "cos": (np.cos, WHOLE),
    "cosh": (np.cosh, WHOLE),
    "cospi": (cospi, WHOLE),
    "exp": (np.exp, WHOLE),
    "exp2": (np.exp2, (-120, 127)),
    "exp10": (lambda x: 10.0**x, (-37, 38)),
    "log": (np.log, (1e-30, 1e30)),
    "log2": (np.log2, (1e-30, 1e30)),
    "log10": (np.log10, (1e-30, 1e30)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-30, 1e30)),
    "sin": (np.sin, WHOLE),
    "sinh": (np.sinh, WHOLE),
    "sinpi": (sinpi, WHOLE),
    "tan": (np.tan, WHOLE),
    "tanh": (np.tanh, (-10, 10)),
    "tanpi": (lambda x: sinpi(x) / cospi(x), (-0.499, 0.499)),
}
EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt": np.sqrt,
    "ceil": np.ceil,
    "floor": np.floor,
    "rint": np.rint,
    "trunc": np.trunc,
    "round": lambda x: np.copysign(np.floor(np.abs(x.astype(F64)) + 0.5), x).astype(x.dtype),
    "fabs": np.abs,
    "abs": np.abs,
    "saturate": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype),
    "sign": lambda x: np.where(np.isnan(x), 0, np.where(x == 0, x, np.sign(x))).astype(x.dtype),
}


def arguments(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    spread = np.linspace(low, high, 4000)
    close = rng.uniform(max(low, -2), min(high, 2), 4000) if low < 2 and high > -2 else spread
    return np.concatenate([spread, close, [low, high]]).astype(np.float32)


@pytest.mark.parametrize("space", ["", "fast::", "precise::"])
def test_transcendental_functions(space: str) -> None:
    x = np.concatenate([arguments(*bounds) for _, bounds in ONE.values()])
    n = x.size // len(ONE)
    out = np.zeros(x.size, np.float32)
    cases = "".join(f"case {i}: out[i] = {space}{name}(x[i]); break;" for i, name in enumerate(ONE))
    launch(
        f"kernel void k(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {{ switch (i / {n}) {{ {cases} }} }}",
        {"x": x, "out": out},
        x.size,
    )
    for i, (name, (exact, _)) in enumerate(ONE.items()):
        part = slice(i * n, (i + 1) * n)
        off = ulps(out[part], exact(x[part].astype(F64)))
        assert off.max() <= MOST_ULPS, f"{name}({x[part][off.argmax()]!r}) is {off.max()} ulps off"


def test_functions_of_half_are_the_float_results_rounded_once() -> None:
    names = list(ONE)
    with np.errstate(over="ignore"):
        x = np.concatenate([arguments(*bounds)[::8] for _, bounds in ONE.values()]).astype(np.float16)
    n = x.size // len(ONE)
    out, wide = np.zeros(x.size, np.float16), np.zeros(x.size, np.float32)
    cases = "".join(
        f"case {i}: out[i] = {name}(x[i]); wide[i] = {name}(float(x[i])); break;" for i, name in enumerate(names)
    )
    launch(
        f"""kernel void k(device const half* x, device half* out, device float* wide, uint i [[thread_position_in_grid]]) {{
          static_assert(is_same_v<decltype(exp(x[0])), half>); switch (i / {n}) {{ {cases} }} }}""",
        {"x": x, "out": out, "wide": wide},
        x.size,
    )
    with np.errstate(over="ignore"):
        same_bits(out, wide.astype(np.float16))


@pytest.mark.parametrize(("name", "dtype"), [("float", np.float32), ("half", np.float16)])
def test_exact_functions(name: str, dtype: type) -> None:
    special = [0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 1e-30, -1e-30, 8388607.5, np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore"):
        x = np.concatenate([np.array(special), np.random.default_rng(1).standard_normal(3000) * 10]).astype(dtype)
    out = np.zeros((len(EXACT), x.size), dtype)
    body = "".join(f"out[{i * x.size} + i] = {function}(x[i]);" for i, function in enumerate(EXACT))
    launch(
        f"kernel void k(device const {name}* x, device {name}* out, uint i [[thread_position_in_grid]]) {{ {body} }}",
        {"x": x, "out": out},
        x.size,
    )
    with np.errstate(invalid="ignore"):
        for found, (function, exact) in zip(out, EXACT.items(), strict=True):
            try:
                same_bits(found, exact(x))
            except AssertionError as error:
                raise AssertionError(f"{function}: {error}") from None


def test_functions_of_two_and_three_floats() -> None:
    rng = np.random.default_rng(2)
    special = np.array([0, -0.0, 1, -1, 3, np.inf, -np.inf, np.nan], np.float32)
    grid = np.array(np.meshgrid(special, special, special)).reshape(3, -1)
    x, y, z = np.concatenate([grid, rng.standard_normal((3, 4000)) * 5], axis=1).astype(np.float32)
    with np.errstate(all="ignore"):
        median = np.where(
            np.isnan(x) | np.isnan(y) | np.isnan(z), np.fmin(np.fmin(x, y), z), np.median([x, y, z], axis=0)
        ).astype(np.float32)
        exact = {
            "fmax(x, y)": np.fmax(x, y),
            "min(x, y)": np.fmin(x, y),
            "fmod(x, y)": np.fmod(x, y),
            "copysign(x, y)": np.copysign(x, y),
            "fdim(x, y)": np.where(np.isnan(x + y) & (np.isnan(x) | np.isnan(y)), np.nan, np.where(x > y, x - y, 0)),
            "divide(x, y)": x / y,
            "nextafter(x, y)": np.nextafter(x, y),
            "max3(x, y, z)": np.fmax(np.fmax(x, y), z),
            "fmin3(x, y, z)": np.fmin(np.fmin(x, y), z),
            "median3(x, y, z)": median,
            "clamp(x, -1.0f, 2.0f)": np.fmin(np.fmax(x, np.float32(-1)), np.float32(2)),
            "mix(x, y, z)": x + (y - x) * z,
            "step(x, y)": np.where(y < x, 0, 1),
            "select(x, y, isnan(z))": np.where(np.isnan(z), y, x),
        }
        close = {
            "atan2(x, y)": np.arctan2(x.astype(F64), y),
            "powr(fabs(x), y)": np.abs(x.astype(F64)) ** y,
            "fma(x, y, z)": x.astype(F64) * y + z,
        }
    names = [*exact, *close]
    out = np.zeros((len(names), x.size), np.float32)
    body = "".join(f"out[{n * x.size} + i] = {expression};" for n, expression in enumerate(names))
    launch(
        f"""kernel void k(device const float* a, device const float* b, device const float* c, device float* out, uint i [[thread_position_in_grid]]) {{
          float x = a[i], y = b[i], z = c[i]; {body} }}""",
        {"a": x, "b": y, "c": z, "out": out},
        x.size,
    )
    for name, found in zip(names, out, strict=True):
        if name in exact:  # of zeros of both signs the smaller and the larger is either
            expected = np.asarray(exact[name], np.float32)
            np.testing.assert_array_equal(found, expected, err_msg=name)
        else:
            fine = (
                np.isfinite(close[name])
                & (np.abs(close[name]) < 1e38)
                & (np.abs(close[name]) > 8 * np.finfo(np.float32).tiny)
            )
            assert ulps(found[fine], close[name][fine]).max() <= (1 if "fma" in name else MOST_ULPS), name


def test_functions_with_two_results() -> None:
    x = np.concatenate([np.random.default_rng(3).standard_normal(1000) * 100, [0, 1, -1, 1e-40, np.inf, -2.5]]).astype(
        np.float32
    )
    out, exponents = np.zeros((7, x.size), np.float32), np.zeros((2, x.size), np.int32)
    n = x.size
    launch(
        f"""kernel void k(device const float* x, device float* out, device int* exponents, uint i [[thread_position_in_grid]]) {{
          int e; float whole, c; out[i] = frexp(x[i], e); exponents[i] = e; out[{n} + i] = modf(x[i], whole); out[{2 * n} + i] = whole;
          out[{3 * n} + i] = sincos(x[i], c); out[{4 * n} + i] = c; out[{5 * n} + i] = ldexp(x[i], 3); out[{6 * n} + i] = fract(x[i]);
          exponents[{n} + i] = x[i] == 0 || isinf(x[i]) ? 0 : ilogb(x[i]);
        }}""",
        {"x": x, "out": out, "exponents": exponents},
        n,
    )
    finite = np.isfinite(x)
    fraction, exponent = np.frexp(x)
    same_bits(out[0], fraction)
    np.testing.assert_array_equal(exponents[0][finite], exponent[finite])
    np.testing.assert_array_equal(exponents[1], np.where(finite & (x != 0), exponent - 1, 0))
    with np.errstate(invalid="ignore"):
        part, whole = np.modf(x)
        same_bits(out[1], part)
        same_bits(out[2], whole)
        same_bits(out[5], x * np.float32(8))
        expected = np.where(finite, np.minimum(x - np.floor(x), np.float32(0.99999994)), 0).astype(np.float32)
    same_bits(out[6], expected)
    assert ulps(out[3][finite], np.sin(x[finite].astype(F64))).max() <= MOST_ULPS
    assert ulps(out[4][finite], np.cos(x[finite].astype(F64))).max() <= MOST_ULPS


def test_multiples_of_a_half_turn_are_exact() -> None:
    x = np.array([0, 0.5, 1, 1.5, 2, -0.5, 1001.5, 8388608, 16777217], np.float32)
    out = np.zeros((2, x.size), np.float32)
    launch(
        f"kernel void k(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {{ out[i] = sinpi(x[i]); out[{x.size} + i] = cospi(x[i]); }}",
        {"x": x, "out": out},
        x.size,
    )
    assert out.tolist() == [[0, 1, 0, -1, 0, -1, -1, 0, 0], [1, 0, -1, 0, 1, 0, 0, 1, 1]]


def test_what_kind_of_number() -> None:
    x = np.array([0, -0.0, 1, -1, 1e-40, -1e-40, np.inf, -np.inf, np.nan, -np.nan], np.float32)
    h = np.array([0, -0.0, 1, -1, 1e-7, -1e-7, np.inf, -np.inf, np.nan, -np.nan], np.float16)
    out = np.zeros((12, x.size), np.uint8)
    tests = ("isnan", "isinf", "isfinite", "isnormal", "signbit")
    body = "".join(
        f"out[{n * x.size} + i] = {t}(x[i]); out[{(n + 5) * x.size} + i] = {t}(h[i]);" for n, t in enumerate(tests)
    )
    launch(
        f"""kernel void k(device const float* x, device const half* h, device uchar* out, uint i [[thread_position_in_grid]]) {{ {body}
          out[{10 * x.size} + i] = isunordered(x[i], 1.0f); out[{11 * x.size} + i] = any(isnan(float2(x[i], 0))) || all(isinf(x[i] * float2(1, -1))); }}""",
        {"x": x, "h": h, "out": out},
        x.size,
    )
    normal = [False, False, True, True, False, False, False, False, False, False]
    expected = [np.isnan(x), np.isinf(x), np.isfinite(x), normal, np.signbit(x)]
    np.testing.assert_array_equal(out[:5], expected)
    np.testing.assert_array_equal(out[5:10], expected)
    np.testing.assert_array_equal(out[10], np.isnan(x))
    np.testing.assert_array_equal(out[11], ~np.isfinite(x))


def test_geometry() -> None:
    a, b = np.random.default_rng(4).standard_normal((2, 500, 3)).astype(np.float32)
    out, vectors = np.zeros((5, 500), np.float32), np.zeros((6, 500, 3), np.float32)
    launch(
        """kernel void k(device const packed_float3* a, device const packed_float3* b, device float* out, device packed_float3* vectors, uint i [[thread_position_in_grid]]) {
          float3 x = a[i], y = b[i], n = normalize(y);
          out[i] = dot(x, y); out[500 + i] = length(x.xyz); out[1000 + i] = distance(a[i], y); out[1500 + i] = length_squared(x); out[2000 + i] = dot(x.xy, y.zx);
          vectors[i] = cross(x, y); vectors[500 + i] = n; vectors[1000 + i] = reflect(x, n); vectors[1500 + i] = faceforward(x, y, x);
          vectors[2000 + i] = refract(normalize(x), n, 0.5f); vectors[2500 + i] = mix(x, y, 0.25f);
        }""",
        {"a": a, "b": b, "out": out, "vectors": vectors},
        500,
    )
    x, y = a.astype(F64), b.astype(F64)
    n, i = y / np.linalg.norm(y, axis=1, keepdims=True), x / np.linalg.norm(x, axis=1, keepdims=True)
    cosine = np.sum(n * i, 1, keepdims=True)
    k = 1 - 0.25 * (1 - cosine**2)
    scalars = [
        np.sum(x * y, 1),
        np.linalg.norm(x, axis=1),
        np.linalg.norm(x - y, axis=1),
        np.sum(x * x, 1),
        x[:, 0] * y[:, 2] + x[:, 1] * y[:, 0],
    ]
    expected = [
        np.cross(x, y), n, x - 2 * np.sum(n * x, 1, keepdims=True) * n, np.where(np.sum(x * y, 1, keepdims=True) < 0, x, -x),
        0.5 * i - (0.5 * cosine + np.sqrt(k)) * n, x + (y - x) * 0.25,
    ]  # fmt: skip
    # Each is a sum of at most 4 products of rounded numbers below 20: as many errors of an eps, with as much for the sums.
    bound = 2 * 4 * 20 * np.finfo(np.float32).eps
    assert np.abs(out - np.array(scalars)).max() <= bound
    assert np.abs(vectors - np.concatenate(expected).reshape(vectors.shape)).max() <= bound


INTEGERS = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_functions(name: str) -> None:
    dtype = np.dtype(INTEGERS[name])
    info, width = np.iinfo(dtype), dtype.itemsize * 8
    rng = np.random.default_rng(5)
    edges = [0, 1, 2, 3, info.max, info.max - 1, info.max // 2, info.min, info.min + 1, info.min // 2]
    grid = np.array(list(product(edges, edges, edges[::3])), dtype).T
    many = rng.integers(info.min, info.max, (3, 2000), dtype=dtype, endpoint=True)
    x, y, z = np.concatenate([grid, many], axis=1)

    def bits(v: int) -> str:
        return format(v & (2**width - 1), f"0{width}b")

    def wrap(v: int) -> int:
        v &= 2**width - 1
        return v - 2**width if info.min < 0 and v >= 2 ** (width - 1) else v

    def hold(v: int) -> int:
        return min(max(v, info.min), info.max)

    def field(v: int, offset: int, count: int) -> int:
        f = (v >> offset) & ((1 << count) - 1)
        return f - (1 << count) if info.min < 0 and f >> (count - 1) else f

    exact: dict[str, Callable[[int, int, int], int]] = {
        "abs(x)": lambda a, b, c: wrap(abs(a)),
        "absdiff(x, y)": lambda a, b, c: wrap(abs(a - b)),
        "addsat(x, y)": lambda a, b, c: hold(a + b),
        "subsat(x, y)": lambda a, b, c: hold(a - b),
        "hadd(x, y)": lambda a, b, c: (a + b) >> 1,
        "rhadd(x, y)": lambda a, b, c: (a + b + 1) >> 1,
        "mulhi(x, y)": lambda a, b, c: (a * b) >> width,
        "madhi(x, y, z)": lambda a, b, c: wrap(((a * b) >> width) + c),
        "madsat(x, y, z)": lambda a, b, c: hold(a * b + c),
        "max(x, y)": lambda a, b, c: max(a, b),
        "min3(x, y, z)": lambda a, b, c: min(a, b, c),
        "median3(x, y, z)": lambda a, b, c: sorted((a, b, c))[1],
        "clamp(x, min(y, z), max(y, z))": lambda a, b, c: min(max(a, min(b, c)), max(b, c)),
        "popcount(x)": lambda a, b, c: bits(a).count("1"),
        "clz(x)": lambda a, b, c: width - len(bits(a).lstrip("0")),
        "ctz(x)": lambda a, b, c: width - len(bits(a).rstrip("0")),
        "reverse_bits(x)": lambda a, b, c: wrap(int(bits(a)[::-1], 2)),
        "rotate(x, y)": lambda a, b, c: wrap(int(bits(a)[b % width :] + bits(a)[: b % width], 2)),
        "extract_bits(x, 3u, 4u)": lambda a, b, c: field(a, 3, 4),
        "insert_bits(x, y, 2u, 5u)": lambda a, b, c: wrap((a & ~(31 << 2)) | (b & 31) << 2),
    }
    out, vectors = np.zeros((len(exact), x.size), dtype), np.zeros((x.size, 2), dtype)
    body = "".join(f"out[{n * x.size} + i] = {expression};" for n, expression in enumerate(exact))
    launch(
        f"""kernel void k(device const {name}* a, device const {name}* b, device const {name}* c, device {name}* out, device {name}2* vectors, uint i [[thread_position_in_grid]]) {{
          {name} x = a[i], y = b[i], z = c[i]; {body}
          vectors[i] = addsat({name}2(x, y), z) ^ rotate({name}2(x, z), {name}2(y)) ^ clz({name}2(x, y)) ^ extract_bits({name}2(x, z), 3u, 4u);
        }}""",
        {"a": x, "b": y, "c": z, "out": out, "vectors": vectors},
        x.size,
    )
    triples = list(zip(x.tolist(), y.tolist(), z.tolist(), strict=True))
    for found, (expression, function) in zip(out, exact.items(), strict=True):
        expected = np.array([wrap(function(*t)) for t in triples], dtype)
        np.testing.assert_array_equal(found, expected, err_msg=expression)
    f = {e.split("(")[0]: function for e, function in exact.items()}
    first = [
        wrap(f["addsat"](a, c, 0) ^ f["rotate"](a, b, 0) ^ f["clz"](a, 0, 0) ^ f["extract_bits"](a, 0, 0))
        for a, b, c in triples
    ]
    np.testing.assert_array_equal(vectors[:, 0], np.array(first, dtype))


def test_24_bit_products() -> None:
    x, y = np.random.default_rng(6).integers(-(2**23), 2**23, (2, 1000)).astype(np.int32)
    signed, unsigned = np.zeros_like(x), np.zeros(x.size, np.uint32)
    launch(
        """kernel void k(device const int* x, device const int* y, device int* signed_, device uint* unsigned_, uint i [[thread_position_in_grid]]) {
          signed_[i] = mad24(x[i], y[i], 5); unsigned_[i] = mul24(uint(x[i]), uint(y[i]));
        }""",
        {"x": x, "y": y, "signed_": signed, "unsigned_": unsigned},
        x.size,
    )
    low = (x.astype(np.int64) & 0xFFFFFF) * (y.astype(np.int64) & 0xFFFFFF)
    np.testing.assert_array_equal(unsigned, (low & 0xFFFFFFFF).astype(np.uint32))
    np.testing.assert_array_equal(signed, (x.astype(np.int64) * y + 5).astype(np.int32))


def test_packing_to_normalized_integers_and_back() -> None:
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.uniform(-1.5, 1.5, (500, 4)), [[0, 1, -1, 0.5], [np.inf, -np.inf, 2, -2]]]).astype(
        np.float32
    )
    words = rng.integers(0, 2**32, x.shape[0], dtype=np.uint32)
    words[:4] = 0, 2**32 - 1, 0x80808080, 0x7FFF8000
    packed, unpacked = np.zeros((6, x.shape[0]), np.uint32), np.zeros((6, x.shape[0], 4), np.float32)
    n = x.shape[0]
    launch(
        f"""kernel void k(device const float4* x, device const uint* words, device uint* packed, device float4* unpacked, uint i [[thread_position_in_grid]]) {{
          packed[i] = pack_float_to_unorm4x8(x[i]); packed[{n} + i] = pack_float_to_snorm4x8(x[i]); packed[{2 * n} + i] = pack_float_to_unorm2x16(x[i].xy);
          packed[{3 * n} + i] = pack_float_to_snorm2x16(x[i].xy); packed[{4 * n} + i] = pack_float_to_unorm10a2(x[i]); packed[{5 * n} + i] = pack_float_to_unorm565(x[i].xyz);
          unpacked[i] = unpack_unorm4x8_to_float(words[i]); unpacked[{n} + i] = unpack_snorm4x8_to_float(words[i]);
          unpacked[{2 * n} + i] = float4(unpack_unorm2x16_to_float(words[i]), unpack_snorm2x16_to_float(words[i]));
          unpacked[{3 * n} + i] = unpack_unorm10a2_to_float(words[i]); unpacked[{4 * n} + i] = float4(unpack_unorm565_to_float(ushort(words[i])), 0);
          unpacked[{5 * n} + i] = float4(unpack_unorm4x8_to_half(words[i]));
        }}""",
        {"x": x, "words": words, "packed": packed, "unpacked": unpacked},
        n,
    )
    u, s = np.clip(x, 0, 1), np.clip(x, -1, 1)

    def word(fields: list[tuple[np.ndarray, int]]) -> np.ndarray:
        value, at = np.zeros(n, np.uint64), 0
        for f, width in fields:
            value |= (np.rint(f).astype(np.int64) & (2**width - 1)).astype(np.uint64) << np.uint64(at)
            at += width
        return value.astype(np.uint32)

    def column(v: np.ndarray, c: int, most: int) -> np.ndarray:
        return v[:, c] * np.float32(most)

    np.testing.assert_array_equal(packed[0], word([(column(u, c, 255), 8) for c in range(4)]))
    np.testing.assert_array_equal(packed[1], word([(column(s, c, 127), 8) for c in range(4)]))
    np.testing.assert_array_equal(packed[2], word([(column(u, c, 65535), 16) for c in range(2)]))
    np.testing.assert_array_equal(packed[3], word([(column(s, c, 32767), 16) for c in range(2)]))
    np.testing.assert_array_equal(
        packed[4],
        word([(column(u, 0, 1023), 10), (column(u, 1, 1023), 10), (column(u, 2, 1023), 10), (column(u, 3, 3), 2)]),
    )
    np.testing.assert_array_equal(
        packed[5], word([(column(u, 0, 31), 5), (column(u, 1, 63), 6), (column(u, 2, 31), 5)])
    )
    bytes_, shorts = words.view(np.uint8).reshape(n, 4), words.view(np.uint16).reshape(n, 2)
    f32 = np.float32
    same_bits(unpacked[0], bytes_ / f32(255))
    same_bits(unpacked[1], np.maximum(bytes_.view(np.int8) / f32(127), f32(-1)))
    same_bits(
        unpacked[2], np.concatenate([shorts / f32(65535), np.maximum(shorts.view(np.int16) / f32(32767), f32(-1))], 1)
    )
    tens = np.stack([words & 1023, words >> 10 & 1023, words >> 20 & 1023], 1) / f32(1023)
    same_bits(unpacked[3], np.concatenate([tens, (words >> 30)[:, None] / f32(3)], 1).astype(f32))
    low = words & 0xFFFF
    same_bits(
        unpacked[4],
        np.stack([(low & 31) / f32(31), (low >> 5 & 63) / f32(63), (low >> 11) / f32(31), low * f32(0)], 1).astype(f32),
    )
    same_bits(unpacked[5], (bytes_ / f32(255)).astype(np.float16).astype(f32))


def test_srgb_bytes_survive_a_round_trip() -> None:
    words = np.arange(256, dtype=np.uint32) * np.uint32(0x01010101)
    back, linear = np.zeros(256, np.uint32), np.zeros((256, 4), np.float32)
    launch(
        """kernel void k(device const uint* words, device uint* back, device float4* linear, uint i [[thread_position_in_grid]]) {
          linear[i] = unpack_unorm4x8_srgb_to_float(words[i]); back[i] = pack_float_to_srgb_unorm4x8(linear[i]);
        }""",
        {"words": words, "back": back, "linear": linear},
        256,
    )
    np.testing.assert_array_equal(back, words)
    c = np.arange(256) / 255
    exact = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    # powf's ulp and three roundings before it, times the exponent.
    assert ulps(linear[:, 0], exact).max() <= 8
    assert ulps(linear[:, 3], c).max() <= 1
