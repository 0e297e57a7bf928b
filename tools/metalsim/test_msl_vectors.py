"""Vectors, packed vectors, swizzles and matrices."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from inferspec.tools.metalsim import CompileError
from inferspec.tools.metalsim.include.metalsim.make_swizzles import HEAD, swizzles
from inferspec.tools.metalsim.preprocess import HEADERS
from inferspec.tools.metalsim.snippets import launch, same_bits

pytestmark = pytest.mark.usefixtures("cxx")

SCALARS = {
    "bool": 1, "char": 1, "uchar": 1, "short": 2, "ushort": 2, "int": 4, "uint": 4, "long": 8, "ulong": 8, "half": 2,
    "bfloat": 2, "float": 4,
}  # fmt: skip


def test_sizes_and_alignments_are_those_of_msl() -> None:
    asserts = []
    for scalar, size in SCALARS.items():
        for n, room in ((2, 2), (3, 4), (4, 4)):
            vector, packed = f"{scalar}{n}", f"packed_{scalar}{n}"
            asserts.append(
                f'static_assert(sizeof({vector}) == {room * size} && alignof({vector}) == {room * size}, "{vector}");'
            )
            asserts.append(f'static_assert(sizeof({packed}) == {n * size} && alignof({packed}) == {size}, "{packed}");')
    for scalar in ("half", "float"):
        for columns, rows in product((2, 3, 4), repeat=2):
            matrix, size = f"{scalar}{columns}x{rows}", columns * SCALARS[scalar] * (2 if rows == 2 else 4)
            asserts.append(f'static_assert(sizeof({matrix}) == {size}, "{matrix}");')
    out = np.zeros(1, np.int32)
    launch("\n".join(asserts) + "\nkernel void k(device int* out) { out[0] = sizeof(float3); }", {"out": out}, 1)
    assert out[0] == 16


def test_the_committed_swizzles_are_those_that_the_generator_writes() -> None:
    expected = HEAD + "\n" + "\n".join(swizzles(n) for n in (2, 3, 4))
    assert (HEADERS / "metalsim" / "swizzles.h").read_text() == expected


@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_swizzle_reads_its_components(n: int) -> None:
    names = ["".join(c) for letters in ("xyzw", "rgba") for m in (2, 3, 4) for c in product(letters[:n], repeat=m)]
    x = np.arange(10, 10 + n, dtype=np.int32)
    out = np.full((len(names), 4), -1, np.int32)
    body = "".join(
        f"{{ int{len(s)} v = a.{s}; for (int j = 0; j < {len(s)}; j++) out[{4 * i} + j] = v[j]; }}"
        for i, s in enumerate(names)
    )
    launch(
        f"kernel void k(device const packed_int{n}* x, device int* out) {{ int{n} a = x[0]; {body} }}",
        {"x": x, "out": out},
        1,
    )
    for s, found in zip(names, out, strict=True):
        expected = [x["xyzw".find(c) if c in "xyzw" else "rgba".find(c)] for c in s]
        assert found[: len(s)].tolist() == expected, s


@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_swizzle_without_repetition_writes_its_components(n: int) -> None:
    names = ["".join(c) for letters in ("xyzw", "rgba") for m in range(2, n + 1) for c in permutations(letters[:n], m)]
    out = np.zeros((len(names), n), np.float32)
    value = {m: ", ".join(str(10 * (j + 1)) for j in range(m)) for m in (2, 3, 4)}
    body = "".join(
        f"{{ float{n} v(1); v.{s} = float{len(s)}({value[len(s)]}); v.{s} += 1; for (int j = 0; j < {n}; j++) out[{n * i} + j] = v[j]; }}"
        for i, s in enumerate(names)
    )
    launch(f"kernel void k(device float* out) {{ {body} }}", {"out": out}, 1)
    for s, found in zip(names, out, strict=True):
        expected = np.ones(n)
        for j, c in enumerate(s):
            expected["xyzw".find(c) if c in "xyzw" else "rgba".find(c)] = 10 * (j + 1) + 1
        assert found.tolist() == expected.tolist(), s


def test_swizzles_of_swizzles_of_memory_copy_only_what_they_name() -> None:
    x = np.arange(8, dtype=np.float32)
    launch(
        "kernel void k(device float4* x) { x[0].zw = x[1].xy; x[1].wzyx = x[1].xyzw; x[0].xy = x[0].yx; }", {"x": x}, 1
    )
    assert x.tolist() == [1, 0, 4, 5, 7, 6, 5, 4]


def test_a_swizzle_that_is_kept_can_be_read() -> None:
    x = np.arange(8, dtype=np.float32)
    launch(
        """kernel void k(device float4* x) {
          auto pair = x[0].zy; auto other = x[1].wwx; const auto all = x[1].abgr;
          x[0] = float4(pair.x, pair.y, other[2], other[1]); x[1].w = all[3] + all[0] + x[1].yz.y;
        }""",
        {"x": x},
        1,
    )
    assert x.tolist() == [2, 1, 4, 7, 4, 5, 6, 4 + 7 + 6]


def test_a_swizzle_of_a_swizzle_is_what_it_names() -> None:
    x = np.arange(4, dtype=np.float32)
    out = np.zeros(8, np.float32)
    launch(
        """kernel void k(device float4* x, device float4* out) {
          out[0] = float4(x[0].wzy.zx, x[0].zyx.r, x[0].rgb.bgr.y + x[0].xy.yx.x);
          out[1] = x[0].wzyx.wzyx.yyzz * 2;
        }""",
        {"x": x, "out": out},
        1,
    )
    assert out.tolist() == [1, 3, 2, 2, 2, 2, 4, 4]


def test_a_list_of_fewer_numbers_is_filled_up_with_zeros() -> None:
    out = np.full(8, 9, np.uint32)
    launch(
        """kernel void k(device uint4* out) {
          uint4 some = {7, 8u, 9 ^ 1};
          out[0] = some; some = {5, 6}; out[1] = some;
        }""",
        {"out": out},
        1,
    )
    assert out.tolist() == [7, 8, 8, 0, 5, 6, 0, 0]


def test_a_repeated_component_cannot_be_written() -> None:
    with pytest.raises(CompileError, match="names a component twice cannot be written"):
        launch("kernel void k(device float4* x) { x[0].xx = float2(1); }", {"x": np.zeros(4, np.float32)}, 1)


def test_vectors_of_different_types_do_not_mix() -> None:
    with pytest.raises(
        CompileError,
        match=r"snippet\.metal:3:\d+: error: (no match for .operator\+.|invalid operands to binary expression)",
    ):
        launch("kernel void k(device float4* x) { x[0] = x[0] + int4(1); }", {"x": np.zeros(4, np.float32)}, 1)
    with pytest.raises(CompileError):
        launch("kernel void k(device float4* x) { int4 i = x[0]; x[0].x = i.x; }", {"x": np.zeros(4, np.float32)}, 1)


def test_constructors_take_parts_scalars_and_other_types() -> None:
    out = np.zeros((12, 4), np.float32)
    launch(
        """
        constant float4 table[2] = {float4(1), {1, 2, 3, 4}};
        kernel void k(device float4* out) {
          float2 ab(1, 2); float3 abc(ab, 3); packed_float3 p = abc; half2 h(5, 6); int4 i = {7, 8, 9, 10};
          out[0] = float4(ab, ab); out[1] = float4(0, abc); out[2] = float4(abc, 4); out[3] = float4(ab.x, ab.yx, 4);
          out[4] = float4(0, 1, ab); out[5] = float4(p, 9); out[6] = float4(float2(h), h.yx.x, 0.5h); out[7] = float4(i);
          out[8] = 3; out[9] = table[1]; out[10] = float4(i.wzyx); out[11] = float4(bool2(true, false), uchar2(uint2(257, 258)));
        }""",
        {"out": out},
        1,
    )
    assert out.astype(int)[:6].tolist() == [
        [1, 2, 1, 2],
        [0, 1, 2, 3],
        [1, 2, 3, 4],
        [1, 2, 1, 4],
        [0, 1, 1, 2],
        [1, 2, 3, 9],
    ]
    assert out[6:].tolist() == [[5, 6, 6, 0.5], [7, 8, 9, 10], [3, 3, 3, 3], [1, 2, 3, 4], [10, 9, 8, 7], [1, 0, 1, 2]]


def test_operators_act_on_components_and_spread_scalars() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, 100, (2, 64, 4)).astype(np.int32)
    out, compared = np.zeros((10, 64, 4), np.int32), np.zeros((5, 64, 4), np.uint8)
    launch(
        """kernel void k(device const int4* a, device const int4* b, device int4* out, device uchar4* compared, uint i [[thread_position_in_grid]]) {
          int4 x = a[i], y = b[i], z = x;
          out[i] = x + y; out[64 + i] = 3 - x; out[128 + i] = x * y.wzyx; out[192 + i] = x / y; out[256 + i] = x % 7;
          out[320 + i] = (x & y) | (~x ^ 5); out[384 + i] = x << 3 >> (y & 3); out[448 + i] = -x; z *= 2; z -= y; z++; out[512 + i] = z;
          out[576 + i] = select(x, y, x < y);
          compared[i] = uchar4(x < y); compared[64 + i] = uchar4(x == x.yxwz); compared[128 + i] = uchar4(!(x >= 50));
          compared[192 + i] = uchar4(x < 30 || y > 60); compared[256 + i] = uchar4(all(x < 90), any(y < 10), all(bool2(true)), any(x.xy > y.xy && y.zw != 1));
        }""",
        {"a": a, "b": b, "out": out, "compared": compared},
        64,
    )
    expected = [
        a + b, 3 - a, a * b[:, ::-1], a // b, a % 7, (a & b) | (~a ^ 5), a << 3 >> (b & 3), -a, a * 2 - b + 1, np.where(a < b, b, a),
    ]  # fmt: skip
    for found, wanted in zip(out, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(compared[0], a < b)
    np.testing.assert_array_equal(compared[1], a == a[:, [1, 0, 3, 2]])
    np.testing.assert_array_equal(compared[2], a < 50)
    np.testing.assert_array_equal(compared[3], (a < 30) | (b > 60))
    both = np.any((a[:, :2] > b[:, :2]) & (b[:, 2:] != 1), axis=1)
    np.testing.assert_array_equal(
        compared[4], np.stack([np.all(a < 90, 1), np.any(b < 10, 1), np.ones(64, bool), both], 1)
    )


def test_small_types_wrap_and_round_as_scalars_do() -> None:
    a = np.random.default_rng(1).integers(0, 256, (256, 4)).astype(np.uint8)
    h = np.random.default_rng(2).standard_normal((256, 4)).astype(np.float16)
    out, rounded = np.zeros_like(a), np.zeros_like(h)
    launch(
        """kernel void k(device const uchar4* a, device const half4* h, device uchar4* out, device half4* rounded, uint i [[thread_position_in_grid]]) {
          out[i] = a[i] * a[i] + 200; rounded[i] = h[i] * h[i].yzwx + h[i];
        }""",
        {"a": a, "h": h, "out": out, "rounded": rounded},
        256,
    )
    np.testing.assert_array_equal(out, a * a + np.uint8(200))
    same_bits(rounded, h * h[:, [1, 2, 3, 0]] + h)


def test_packed_vectors_compute_and_lie_close() -> None:
    x = np.random.default_rng(3).standard_normal((32, 3)).astype(np.float32)
    out = x.copy()
    launch(
        """kernel void k(device const packed_float3* x, device packed_float3* out, uint i [[thread_position_in_grid]]) {
          packed_float3 p = x[i];
          out[i] = x[i] * 2 + p.zyx; out[i].yz += 1; out[i][0] -= p.r;
        }""",
        {"x": x, "out": out},
        32,
    )
    expected = x * 2 + x[:, ::-1]
    expected[:, 1:] += 1
    expected[:, 0] -= x[:, 0]
    same_bits(out, expected)


@pytest.mark.parametrize(("columns", "rows"), list(product((2, 3, 4), repeat=2)))
def test_matrices(columns: int, rows: int) -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(-9, 9, (columns, rows)).astype(np.float32)  # a row here is a column there
    b = rng.integers(-9, 9, (rows, columns)).astype(np.float32)
    v = rng.integers(-9, 9, columns).astype(np.float32)
    w = rng.integers(-9, 9, rows).astype(np.float32)
    out = {
        "sum": np.zeros((columns, rows), np.float32),
        "product": np.zeros((rows, rows), np.float32),
        "turned": np.zeros((rows, columns), np.float32),
        "mv": np.zeros(rows, np.float32),
        "wm": np.zeros(columns, np.float32),
    }
    m, t = f"float{columns}x{rows}", f"float{rows}x{columns}"
    load = "; ".join(
        f"for (int j = 0; j < {r}; j++) {to}[{c}][j] = {source}[{c} * {r} + j]"
        for to, source, n, r in (("A", "a", columns, rows), ("B", "b", rows, columns))
        for c in range(n)
    )
    launch(
        f"""
        template <typename M> void put(device float* out, M m, int columns, int rows) {{
          for (int c = 0; c < columns; c++) for (int r = 0; r < rows; r++) out[c * rows + r] = m[c][r];
        }}
        kernel void k(device const float* a, device const float* b, device const packed_float{columns}* v, device const packed_float{rows}* w,
                      device float* sum, device float* product, device float* turned, device packed_float{rows}* mv, device packed_float{columns}* wm) {{
          {m} A; {t} B; {load};
          put(sum, A + 2 * A - {m}(3.0f), {columns}, {rows});
          put(product, A * B, {rows}, {rows});
          put(turned, transpose(A), {rows}, {columns});
          float{columns} vv = v[0]; float{rows} ww = w[0];
          mv[0] = A * vv; wm[0] = ww * A;
        }}""",
        {"a": a, "b": b, "v": v, "w": w, **out},
        1,
    )
    np.testing.assert_array_equal(out["sum"], 3 * a - 3 * np.eye(columns, rows, dtype=np.float32))
    np.testing.assert_array_equal(out["product"], b @ a)
    np.testing.assert_array_equal(out["turned"], a.T)
    np.testing.assert_array_equal(out["mv"], v @ a)
    np.testing.assert_array_equal(out["wm"], a @ w)


def test_matrices_times_swizzles_and_packed_vectors() -> None:
    rng = np.random.default_rng(7)
    m, n, q = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((4, 4), (3, 3), (2, 3)))
    x = rng.integers(-9, 9, (8, 4)).astype(np.float32)
    out = {name: np.zeros((8, size), np.float32) for name, size in zip("abcdef", (4, 4, 3, 3, 2, 3), strict=True)}
    launch(
        """kernel void k(constant float4x4& m, device const packed_float3* n, device const packed_float3* q, device const float4* x, device float4* a, device float4* b,
                      device packed_float3* c, device packed_float3* d, device packed_float2* e, device packed_float3* f, uint i [[thread_position_in_grid]]) {
          float3x3 N(n[0], n[1], n[2]); float2x3 Q(q[0], q[1]); float4 v = x[i]; packed_float3 p = v.zyx;
          a[i] = m * v.wzyx; b[i] = x[i].yxwz * m; c[i] = N * x[i].xyz; d[i] = p * N + Q * v.wx; e[i] = v.xzy * Q + p * Q; f[i] = v.zxw;
        }""",
        {"m": m, "n": n, "q": q, "x": x, **out},
        8,
    )
    # A row here is a column there.
    np.testing.assert_array_equal(out["a"], x[:, [3, 2, 1, 0]] @ m)
    np.testing.assert_array_equal(out["b"], x[:, [1, 0, 3, 2]] @ m.T)
    np.testing.assert_array_equal(out["c"], x[:, :3] @ n)
    np.testing.assert_array_equal(out["d"], x[:, [2, 1, 0]] @ n.T + x[:, [3, 0]] @ q)
    np.testing.assert_array_equal(out["e"], (x[:, [0, 2, 1]] + x[:, [2, 1, 0]]) @ q.T)
    np.testing.assert_array_equal(out["f"], x[:, [2, 0, 3]])


def test_determinants_and_matrix_constructors() -> None:
    x = np.random.default_rng(5).integers(-5, 6, (3, 16)).astype(np.float32)
    out = np.zeros(6, np.float32)
    launch(
        """kernel void k(device const float* x, device float* out) {
          float2x2 a(x[0], x[1], x[2], x[3]); float3x3 b(float3(x[16], x[17], x[18]), float3(x[19], x[20], x[21]), float3(x[22], x[23], x[24]));
          float4x4 c; for (int i = 0; i < 16; i++) c[i / 4][i % 4] = x[32 + i];
          out[0] = determinant(a); out[1] = determinant(b); out[2] = determinant(c);
          half2x2 h(a); out[3] = h[1].x; out[4] = float2x2(h) == a; out[5] = a != a;
        }""",
        {"x": x, "out": out},
        1,
    )
    expected = [
        np.linalg.det(x[0, :4].reshape(2, 2)),
        np.linalg.det(x[1, :9].reshape(3, 3)),
        np.linalg.det(x[2].reshape(4, 4)),
    ]
    np.testing.assert_array_equal(out[:3], np.round(expected))
    assert out[3:].tolist() == [x[0, 2], 1, 0]


def test_as_type_keeps_the_bits() -> None:
    x = np.random.default_rng(6).integers(0, 2**32, (64, 4), dtype=np.uint32)
    back, shorts, longs = np.zeros_like(x), np.zeros((64, 2), np.uint32), np.zeros(64, np.uint64)
    launch(
        """kernel void k(device const uint4* x, device uint4* back, device uint2* shorts, device ulong* longs, uint i [[thread_position_in_grid]]) {
          float3 f = as_type<float3>(x[i].xyz);
          back[i] = uint4(as_type<uint3>(f), as_type<uint>(as_type<float>(x[i].w)));
          shorts[i] = uint2(as_type<uint>(as_type<half2>(x[i].x)), as_type<uint>(as_type<ushort2>(x[i].y).yx));
          longs[i] = as_type<ulong>(x[i].zw);
        }""",
        {"x": x, "back": back, "shorts": shorts, "longs": longs},
        64,
    )
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(shorts[:, 0], x[:, 0])
    np.testing.assert_array_equal(shorts[:, 1], x[:, 1] >> 16 | x[:, 1] << 16)
    np.testing.assert_array_equal(longs, x[:, 2] | x[:, 3].astype(np.uint64) << np.uint64(32))


def test_as_type_wants_equal_sizes() -> None:
    with pytest.raises(CompileError, match="both types must have the same size"):
        launch("kernel void k(device float* x) { x[0] = as_type<float>(half(1)); }", {"x": np.zeros(1, np.float32)}, 1)
