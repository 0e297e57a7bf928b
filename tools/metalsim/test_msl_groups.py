"""SIMD-group, quad-group and matrix functions, and atomics."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import ml_dtypes
import numpy as np
import pytest

from inferspec.tools.metalsim.reports import Finding, Report
from inferspec.tools.metalsim.runtime import Mode, Schedule
from inferspec.tools.metalsim.settings import settings
from inferspec.tools.metalsim.snippets import launch, same_bits

pytestmark = pytest.mark.usefixtures("cxx")

DTYPES = {
    "float": np.dtype(np.float32), "half": np.dtype(np.float16), "bfloat": np.dtype(ml_dtypes.bfloat16), "int": np.dtype(np.int32),
    "uint": np.dtype(np.uint32), "short": np.dtype(np.int16), "ushort": np.dtype(np.uint16), "char": np.dtype(np.int8), "uchar": np.dtype(np.uint8),
}  # fmt: skip
THREADS = 45  # a whole SIMD-group and 13 lanes; with quads: the last one of one lane
GROUPS = {"simd": 32, "quad": 4}
EACH_GROUP = pytest.mark.parametrize(("prefix", "width"), GROUPS.items())


def groups(n: int, width: int) -> list[np.ndarray]:
    return np.split(np.arange(n), range(width, n, width))


def by_group(x: np.ndarray, width: int, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The function of each group's values, given to all its lanes."""
    return np.concatenate([np.broadcast_to(function(x[g]), x[g].shape) for g in groups(len(x), width)]).astype(x.dtype)


def small(dtype: np.dtype, shape: tuple[int, ...] = (THREADS,)) -> np.ndarray:
    """Integers whose sums are exact in every dtype."""
    return np.random.default_rng(0).integers(0, 3, shape).astype(dtype)


@pytest.mark.parametrize("name", DTYPES)
@EACH_GROUP
def test_reductions_and_prefixes(prefix: str, width: int, name: str) -> None:
    dtype = DTYPES[name]
    x = small(dtype)
    factors = np.where(np.arange(THREADS) % 7 == 0, 2, 1).astype(dtype)
    floating = dtype.kind not in "iu"
    functions = {
        "sum(v)": lambda v: v.sum(), "max(v)": np.max, "min(v)": np.min, "prefix_inclusive_sum(v)": np.cumsum,
        "prefix_exclusive_sum(v)": lambda v: np.cumsum(v) - v,
    }  # fmt: skip
    if not floating:
        functions |= {"and(v)": np.bitwise_and.reduce, "or(v)": np.bitwise_or.reduce, "xor(v)": np.bitwise_xor.reduce}
    products = {
        "product(f)": np.prod, "prefix_inclusive_product(f)": np.cumprod, "prefix_exclusive_product(f)": lambda v: np.cumprod(v) / v,
    }  # fmt: skip
    out = np.zeros((len(functions) + len(products), THREADS), dtype)
    body = "".join(f"out[{n * THREADS} + i] = {prefix}_{call};" for n, call in enumerate([*functions, *products]))
    launch(
        f"""kernel void k(device const {name}* x, device const {name}* factors, device {name}* out, uint i [[thread_position_in_grid]]) {{
          {name} v = x[i], f = factors[i]; static_assert(is_same_v<decltype({prefix}_sum(v)), {name}>); {body} }}""",
        {"x": x, "factors": factors, "out": out},
        THREADS,
    )
    for found, (call, function) in zip(out, [*functions.items(), *products.items()], strict=True):
        values = (factors if call in products else x).astype(np.float64 if floating else np.int64)
        expected = by_group(values, width, function).astype(dtype)
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64), err_msg=call)


@EACH_GROUP
def test_vectors_are_reduced_by_component(prefix: str, width: int) -> None:
    x = small(np.dtype(np.float16), (THREADS, 4))
    out = np.zeros((3, THREADS, 4), np.float16)
    launch(
        f"""kernel void k(device const half4* x, device half4* out, uint i [[thread_position_in_grid]]) {{
          out[i] = {prefix}_sum(x[i]); out[{THREADS} + i] = {prefix}_max(x[i].wzyx); out[{2 * THREADS} + i] = {prefix}_prefix_exclusive_sum(x[i]);
        }}""",
        {"x": x, "out": out},
        THREADS,
    )
    for column in range(4):
        v = x[:, column].astype(np.float64)
        np.testing.assert_array_equal(out[0, :, column], by_group(v, width, np.sum))
        np.testing.assert_array_equal(out[1, :, 3 - column], by_group(v, width, np.max))
        np.testing.assert_array_equal(out[2, :, column], by_group(v, width, lambda g: np.cumsum(g) - g))


def tree(v: list[np.float32]) -> np.float32:
    while len(v) > 1:
        v = [reduce(np.add, v[i : i + 2]) for i in range(0, len(v), 2)]
    return v[0]


def halves(v: list[np.float32]) -> np.float32:
    while len(v) > 1:
        h = (len(v) + 1) // 2
        v = [v[i] + v[i + h] if i + h < len(v) else v[i] for i in range(h)]
    return v[0]


ORDERS: dict[str, Callable[[list[np.float32]], np.float32]] = {
    "tree": tree,
    "forward": lambda v: reduce(np.add, v),
    "backward": lambda v: reduce(np.add, v[::-1]),
    "halves": halves,
}


@pytest.mark.parametrize("order", ORDERS)
def test_the_order_of_a_reduction_is_the_schedules(order: str) -> None:
    x = np.random.default_rng(1).standard_normal(THREADS).astype(np.float32)
    out = np.zeros(THREADS, np.float32)
    launch(
        "kernel void k(device const float* x, device float* out, uint i [[thread_position_in_grid]]) { out[i] = simd_sum(x[i]); }",
        {"x": x, "out": out},
        THREADS,
        schedule=Schedule(reduction=order),  # type: ignore[arg-type]
    )
    for g in groups(THREADS, 32):
        same_bits(out[g], np.full(len(g), ORDERS[order](list(x[g])), np.float32))


@EACH_GROUP
def test_only_active_lanes_take_part(prefix: str, width: int) -> None:
    x = small(np.dtype(np.int32), (64,)) + 1
    out = np.zeros(64, np.int32)
    launch(
        f"""kernel void k(device const int* x, device int* out, uint i [[thread_position_in_grid]]) {{
          if (i % 3 == 0) out[i] = {prefix}_sum(x[i]);
          else out[i] = 100 * {prefix}_prefix_inclusive_sum(x[i]);
        }}""",
        {"x": x, "out": out},
        64,
    )
    lanes = np.arange(64)
    third = by_group(np.where(lanes % 3 == 0, x, 0), width, np.sum)
    others = by_group(np.where(lanes % 3 == 0, 0, x), width, np.cumsum)
    np.testing.assert_array_equal(out, np.where(lanes % 3 == 0, third, 100 * others))


SHUFFLES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {  # source lane in the group, of every lane
    "shuffle(v, ushort((lane * 5 + 1) % W))": lambda lane, w: (lane * 5 + 1) % w,
    "broadcast(v, 2)": lambda lane, w: np.full_like(lane, 2),
    "shuffle_xor(v, 3)": lambda lane, w: lane ^ 3,
    "shuffle_down(v, 3)": lambda lane, w: np.where(lane + 3 < w, lane + 3, lane),
    "shuffle_up(v, 3)": lambda lane, w: np.where(lane >= 3, lane - 3, lane),
    "shuffle_rotate_down(v, 3)": lambda lane, w: (lane + 3) % w,
    "shuffle_rotate_up(v, 3)": lambda lane, w: (lane - 3) % w,
}


@pytest.mark.parametrize("name", ["float", "half", "bfloat", "uchar", "int"])
@EACH_GROUP
def test_shuffles(prefix: str, width: int, name: str) -> None:
    x = np.arange(64).astype(DTYPES[name])
    out, pairs = np.zeros((len(SHUFFLES), 64), x.dtype), np.zeros((64, 2), x.dtype)
    body = "".join(f"out[{n * 64} + i] = {prefix}_{call.replace('W', str(width))};" for n, call in enumerate(SHUFFLES))
    launch(
        f"""kernel void k(device const {name}* x, device {name}* out, device {name}2* pairs, uint i [[thread_position_in_grid]]) {{
          {name} v = x[i]; int lane = i % {width}; {body} pairs[i] = {prefix}_shuffle_xor({name}2(v, 1), 1);
        }}""",
        {"x": x, "out": out, "pairs": pairs},
        64,
    )
    lane = np.arange(64) % width
    start = np.arange(64) - lane
    for found, (call, source) in zip(out, SHUFFLES.items(), strict=True):
        np.testing.assert_array_equal(found.astype(int), x[start + source(lane, width)].astype(int), err_msg=call)
    np.testing.assert_array_equal(pairs.astype(int), np.stack([np.arange(64) ^ 1, np.ones(64, int)], 1))


@pytest.mark.parametrize(("prefix", "modulo"), [("simd", 0), ("simd", 16), ("simd", 8), ("quad", 0), ("quad", 2)])
@pytest.mark.parametrize("delta", [0, 1, 2])
def test_filling_shuffles(prefix: str, modulo: int, delta: int) -> None:
    x, filling = np.arange(64, dtype=np.int32), np.arange(100, 164, dtype=np.int32)
    down, up = np.zeros(64, np.int32), np.zeros(64, np.int32)
    last = f", {modulo}" if modulo else ""
    launch(
        f"""kernel void k(device const int* x, device const int* filling, device int* down, device int* up, uint i [[thread_position_in_grid]]) {{
          down[i] = {prefix}_shuffle_and_fill_down(x[i], filling[i], {delta}{last}); up[i] = {prefix}_shuffle_and_fill_up(x[i], filling[i], {delta}{last});
        }}""",
        {"x": x, "filling": filling, "down": down, "up": up},
        64,
    )
    for g in groups(
        64, modulo or GROUPS[prefix]
    ):  # the start of filling follows data's end, the end of filling comes before data
        np.testing.assert_array_equal(down[g], np.concatenate([x[g], filling[g]])[delta : delta + len(g)])
        np.testing.assert_array_equal(up[g], np.concatenate([filling[g], x[g]])[len(g) - delta : 2 * len(g) - delta])


def test_a_shuffle_from_a_lane_that_is_not_there_is_reported() -> None:
    out = np.zeros(40, np.int32)
    found: list[Report] = []
    with settings(on_report=found.append):
        launch(
            "kernel void k(device int* out, uint i [[thread_position_in_grid]]) {\n out[i] = simd_shuffle(int(i), 20);\n}",
            {"out": out},
            40,
            mode=Mode.CHECK,
        )
    assert [(r.finding, r.access.site.line if r.access.site else 0) for r in found] == [(Finding.INACTIVE_LANE, 4)]
    assert out.tolist() == [20] * 32 + list(range(32, 40))


@EACH_GROUP
def test_votes(prefix: str, width: int) -> None:
    out = np.zeros((9, THREADS), np.uint32)
    launch(
        f"""kernel void k(device uint* out, uint i [[thread_position_in_grid]]) {{
          out[i] = {prefix}_all(i < 33); out[{THREADS} + i] = {prefix}_any(i == 33); {prefix}_vote v = {prefix}_ballot(i % 3 == 0);
          out[{2 * THREADS} + i] = uint(ulong(v)); out[{3 * THREADS} + i] = v.all(); out[{4 * THREADS} + i] = v.any();
          out[{5 * THREADS} + i] = uint(({prefix}_vote::vote_t){prefix}_active_threads_mask());
          if (i % 4 != 0) {{ out[{6 * THREADS} + i] = {prefix}_is_first(); out[{7 * THREADS} + i] = {prefix}_broadcast_first(i); }}
          out[{8 * THREADS} + i] = {prefix}_is_helper_thread();
        }}""",
        {"out": out},
        THREADS,
    )
    i = np.arange(THREADS)

    def mask(yes: np.ndarray) -> np.ndarray:
        return by_group(np.where(yes, 1 << (i % width), 0), width, np.sum)

    np.testing.assert_array_equal(out[0], by_group(i, width, lambda g: np.all(g < 33)))
    np.testing.assert_array_equal(out[1], by_group(i, width, lambda g: np.any(g == 33)))
    np.testing.assert_array_equal(out[2], mask(i % 3 == 0))
    np.testing.assert_array_equal(out[3], mask(i % 3 == 0) == 2**width - 1)
    np.testing.assert_array_equal(out[4], mask(i % 3 == 0) != 0)
    np.testing.assert_array_equal(out[5], mask(i >= 0))
    np.testing.assert_array_equal(out[6], i % width == 1)
    np.testing.assert_array_equal(out[7], np.where(i % 4 != 0, i - i % width + 1, 0))
    assert not out[8].any()


MATRIX_TYPES = ("float", "half", "bfloat")


@pytest.mark.parametrize("d", MATRIX_TYPES)
@pytest.mark.parametrize("ab", MATRIX_TYPES)
def test_matrix_products_of_small_integers_are_exact(ab: str, d: str) -> None:
    a, b, c = np.random.default_rng(2).integers(-3, 4, (3, 8, 8)).astype(np.float32)
    sums, products = np.zeros((8, 8), DTYPES[d]), np.zeros((8, 8), DTYPES[d])
    launch(
        f"""kernel void k(device const {ab}* a, device const {ab}* b, device const {d}* c, device {d}* sums, device {d}* products) {{
          simdgroup_matrix<{ab}, 8, 8> A, B; simdgroup_matrix<{d}, 8, 8> C, D, P;
          simdgroup_load(A, a); simdgroup_load(B, b, 8); simdgroup_load(C, c, 8, ulong2(0, 0));
          simdgroup_multiply_accumulate(D, A, B, C); simdgroup_multiply(P, A, B);
          simdgroup_store(D, sums); simdgroup_store(P, products, 8);
        }}""",
        {
            "a": a.astype(DTYPES[ab]),
            "b": b.astype(DTYPES[ab]),
            "c": c.astype(DTYPES[d]),
            "sums": sums,
            "products": products,
        },
        32,
    )
    np.testing.assert_array_equal(sums.astype(np.float32), a @ b + c)
    np.testing.assert_array_equal(products.astype(np.float32), a @ b)


def test_a_product_of_half_is_rounded_at_the_end() -> None:
    a, b = np.random.default_rng(3).standard_normal((2, 8, 8)).astype(np.float16)
    out = np.zeros((8, 8), np.float16)
    launch(
        """kernel void k(device const half* a, device const half* b, device half* out) {
          simdgroup_half8x8 A, B, C = make_filled_simdgroup_matrix<half, 8, 8>(1.0h); simdgroup_load(A, a); simdgroup_load(B, b);
          simdgroup_multiply_accumulate(C, A, B, C); simdgroup_store(C, out);
        }""",
        {"a": a, "b": b, "out": out},
        32,
    )
    exact = np.ones((8, 8), np.float32)
    for k in range(8):
        exact += a[:, k : k + 1].astype(np.float32) * b[k].astype(np.float32)
    same_bits(out, exact.astype(np.float16))


def test_matrices_are_loaded_from_strides_origins_and_transposed() -> None:
    x = np.arange(400, dtype=np.float32).reshape(20, 20)
    out = np.zeros((3, 8, 8), np.float32)
    wide = np.zeros((16, 24), np.float32)
    launch(
        """kernel void k(device const float* x, device float* out, device float* wide) {
          threadgroup float tile[64]; simdgroup_float8x8 m;
          simdgroup_load(m, x, 20, ulong2(3, 5)); simdgroup_store(m, out);
          simdgroup_load(m, x + 20, 20, 0, true); simdgroup_store(m, out + 64);
          simdgroup_store(m, tile, 8, 0, true); simdgroup_barrier(mem_flags::mem_threadgroup);
          simdgroup_load(m, tile); simdgroup_store(m, out + 128); simdgroup_store(m, wide, 24, ulong2(9, 7), true);
        }""",
        {"x": x, "out": out, "wide": wide},
        32,
    )
    np.testing.assert_array_equal(out[0], x[5:13, 3:11])
    np.testing.assert_array_equal(out[1], x[1:9, :8].T)
    np.testing.assert_array_equal(out[2], x[1:9, :8])
    np.testing.assert_array_equal(wide[7:15, 9:17], x[1:9, :8].T)
    assert not wide[:7].any()
    assert not wide[:, :9].any()


def test_each_lane_has_two_elements_where_mlx_expects_them() -> None:
    out, diagonal = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)
    launch(
        """kernel void k(device float* out, device float* diagonal, uint lane [[thread_index_in_simdgroup]]) {
          const short qid = lane / 4, row = (qid & 4) + ((lane / 2) % 4), column = (qid & 2) * 2 + (lane % 2) * 2;
          simdgroup_float8x8 m, d(3.0f);
          m.thread_elements()[0] = row * 8 + column; m.thread_elements()[1] = row * 8 + column + 1;
          simdgroup_store(m, out); simdgroup_store(d, diagonal);
        }""",
        {"out": out, "diagonal": diagonal},
        32,
    )
    np.testing.assert_array_equal(out, np.arange(64).reshape(8, 8))
    np.testing.assert_array_equal(diagonal, 3 * np.eye(8))


def test_a_product_that_lanes_miss_is_reported_and_no_number() -> None:
    out = np.zeros((8, 8), np.float32)
    found: list[Report] = []
    with settings(on_report=found.append):
        launch(
            """kernel void k(device float* out) {
              simdgroup_float8x8 m(1.0f), d;
              simdgroup_multiply(d, m, m); simdgroup_store(d, out);
            }""",
            {"out": out},
            20,
        )
    assert [(r.finding, r.access.site.line if r.access.site else 0) for r in found] == [
        (Finding.DIVERGENT_COLLECTIVE, 5)
    ]
    assert np.isnan(out).sum() == 40


ATOMICS = {
    "int": ["add", "sub", "max", "min", "and", "or", "xor"],
    "uint": ["add", "sub", "max", "min", "and", "or", "xor"],
    "ulong": ["add", "max", "min"],
    "float": ["add", "sub"],
}


@pytest.mark.parametrize("name", ATOMICS)
@pytest.mark.parametrize("space", ["device", "threadgroup"])
def test_atomics(name: str, space: str) -> None:
    dtype = {"ulong": np.dtype(np.uint64)}.get(name, DTYPES.get(name))
    assert dtype is not None
    x = np.random.default_rng(4).integers(0, 100, 96).astype(dtype)
    operations = ATOMICS[name]
    out, swapped = np.full(len(operations), 64, dtype), np.zeros(97, dtype)
    first, last = (
        (f"threadgroup atomic<{name}> a[8]; if (i == 0) for (int j = 0; j < {len(operations)}; j++) atomic_store_explicit(&a[j], 64, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup);",
         f"threadgroup_barrier(mem_flags::mem_threadgroup); if (i == 0) for (int j = 0; j < {len(operations)}; j++) atomic_store_explicit(&out[j], atomic_load_explicit(&a[j], memory_order_relaxed), memory_order_relaxed);")
        if space == "threadgroup" else (f"device atomic<{name}>* a = out;", "")
    )  # fmt: skip
    body = "".join(
        f"atomic_fetch_{operation}_explicit(&a[{n}], x[i], memory_order_relaxed);"
        for n, operation in enumerate(operations)
    )
    launch(
        f"""kernel void k(device const {name}* x, device atomic<{name}>* out, device atomic<{name}>* swapped, uint i [[thread_position_in_grid]]) {{
          {first} {body} {last}
          {name} old = atomic_exchange_explicit(&swapped[96], {name}(i + 1), memory_order_relaxed); atomic_store_explicit(&swapped[i], old, memory_order_relaxed);
        }}""",
        {"x": x, "out": out, "swapped": swapped},
        96,
        mode=Mode.CHECK,
    )
    functions: dict[str, Callable[[np.ndarray], object]] = {
        "add": lambda v: 64 + v.sum(), "sub": lambda v: 64 - v.sum(), "max": lambda v: max(64, v.max()), "min": lambda v: min(64, v.min()),
        "and": lambda v: 64 & np.bitwise_and.reduce(v), "or": lambda v: 64 | np.bitwise_or.reduce(v), "xor": lambda v: 64 ^ np.bitwise_xor.reduce(v),
    }  # fmt: skip
    signed = x.astype(np.float64 if name == "float" else np.int64)
    np.testing.assert_array_equal(out, np.array([functions[o](signed) for o in operations]).astype(dtype))
    assert sorted(swapped.tolist()) == list(range(97))  # every value handed on once


def test_compare_and_exchange_loops_end_and_count() -> None:
    out = np.zeros(2, np.float32)
    launch(
        """kernel void k(device atomic_uint* out, uint i [[thread_position_in_grid]]) {
          uint seen = atomic_load_explicit(&out[0], memory_order_relaxed);
          while (!atomic_compare_exchange_weak_explicit(&out[0], &seen, as_type<uint>(as_type<float>(seen) + 1.5f), memory_order_relaxed, memory_order_relaxed)) {}
        }""",
        {"out": out.view(np.uint32)},
        96,
        schedule=Schedule(order="random", seed=3),
        mode=Mode.CHECK,
    )
    assert out[0] == 144


def findings(source: str, buffers: dict[str, np.ndarray], threads: int = 32) -> list[tuple[Finding, int]]:
    """What check mode finds: kinds and lines, counted from the kernel's first."""
    found: list[Report] = []
    with settings(on_report=found.append):
        launch(source, buffers, threads, mode=Mode.CHECK)
    return sorted({(r.finding, r.access.site.line - 2) for r in found if r.access.site})


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("simdgroup_float8x8 m(1.0f); simdgroup_store(m, x);", None),
        ("simdgroup_float8x8 m(1.0f); simdgroup_store(m, x + 8);", Finding.OUT_OF_BOUNDS),
        ("simdgroup_float8x8 m; simdgroup_load(m, x, 9); simdgroup_store(m, out);", Finding.OUT_OF_BOUNDS),
        ("half4 q = h[i]; x[i] = q.x + q.w;", None),
        ("half4 q = h[i + 1]; x[i] = q.x + q.w;", Finding.OUT_OF_BOUNDS),
        ("out[i] = dot(v[min(i, 15u)].xyz, float3(1));", None),
        ("out[i] = dot(v[i].xyz, float3(1));", Finding.OUT_OF_BOUNDS),
        ("v[i].xy += 1;", Finding.OUT_OF_BOUNDS),
        ("v[i] = clamp(v[i], 0.0f, 1.0f);", Finding.OUT_OF_BOUNDS),
        ("out[i] = as_type<uint>(x[i + 40]);", Finding.OUT_OF_BOUNDS),
        ("bfloat b = ((device bfloat*)x)[i + 100]; out[i] = b + 1;", Finding.OUT_OF_BOUNDS),
        ("atomic_fetch_add_explicit(&a[0], 1, memory_order_relaxed);", None),
        ("atomic_fetch_add_explicit(&a[1], 1, memory_order_relaxed);", Finding.OUT_OF_BOUNDS),
        ("atomic_fetch_add_explicit(&a[0], 1, memory_order_relaxed); out[i] = *(device uint*)a;", Finding.RACE),
        ("out[i] = v[0][i % 4];", None),
        ("out[i] = v[0][i % 5];", Finding.ARRAY_OVERRUN),
        ("out[i] = (uint4(i) << 3).x;", None),
        ("out[i] = (uint4(i) << (i + 1)).x;", Finding.SHIFT),
        ("out[i] = float4(uint4(i) / (uint4(i) & 1)).x;", Finding.DIVISION),
        ("out[i] = (((device float4x4*)x)[i / 8] * float4(1)).y;", None),
        ("out[i] = (((device float4x4*)x)[i / 6] * float4(1)).y;", Finding.OUT_OF_BOUNDS),
    ],
)
def test_what_the_library_does_to_memory_is_seen_at_the_kernels_line(statement: str, finding: Finding | None) -> None:
    source = f"""kernel void k(device float* x, device float* out, device const packed_half4* h, device atomic_uint* a, uint i [[thread_position_in_grid]]) {{
      device float4* v = (device float4*)x;
      {statement}
    }}"""
    buffers = {
        "x": np.zeros(64, np.float32),
        "out": np.zeros(64, np.float32),
        "h": np.zeros((32, 4), np.float16),
        "a": np.zeros(1, np.uint32),
    }
    assert findings(source, buffers) == ([(finding, 3)] if finding else [])


@pytest.mark.parametrize(("scalar", "width"), [("float", 4), ("float", 2), ("half", 4), ("half", 2)])
def test_a_vector_of_scalars_of_which_one_was_not_written_is_found(scalar: str, width: int) -> None:
    source = f"""kernel void k(device const uint* missing, device {scalar}* out, uint t [[thread_index_in_threadgroup]]) {{
      threadgroup {scalar} tile[32];
      if (t != missing[0]) tile[t] = t;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (t < {32 // width}) *(device {scalar}{width}*)(out + {width} * t) = ((threadgroup {scalar}{width}*)tile)[t];
    }}"""
    out = np.zeros(32, np.float16 if scalar == "half" else np.float32)
    for missing in (28, 29, 30, 31):
        buffers = {"missing": np.array([missing], np.uint32), "out": out}
        assert findings(source, buffers) == [(Finding.UNINITIALISED, 5)]
    assert findings(source, {"missing": np.array([32], np.uint32), "out": out}) == []
    assert out.tolist() == list(range(32))


@pytest.mark.parametrize(
    ("declared", "written", "read"),
    [
        ("float3 a[32]", "a[t] = t;", "*(threadgroup float4*)&a[n]"),
        ("float3 a[32]", "for (uint c = t; c < 96; c += 32) a[c / 3][c % 3] = c / 3;", "*(threadgroup float4*)&a[n]"),
        ("half3 a[32]", "a[t] = t;", "*(threadgroup half4*)&a[n]"),
        ("P a[32]", "for (uint c = t; c < 96; c += 32) a[c / 3].c[c % 3] = c / 3;", "P p = a[n]; USE(p.c)"),
        ("Q a[32]", "a[t].a = t; a[t].b = 1;", "Q q = a[n]; USE(q)"),
        ("float a[128]", "((threadgroup float3*)a)[t] = t;", "((threadgroup float4*)a)[n]"),
        ("float a[128]", "((threadgroup P*)a)[t].c[0] = t; ((threadgroup P*)a)[t].c[1] = t; ((threadgroup P*)a)[t].c[2] = 1;", "((threadgroup float4*)a)[n]"),
        ("float a[128]", "((threadgroup Q*)a)[t].a = t; ((threadgroup Q*)a)[t].b = 1;", "Q q = ((threadgroup Q*)a)[n]; USE(q)"),
        ("float a[128]", "((threadgroup Q*)a)[t].a = t; ((threadgroup Q*)a)[t].b = 1;", "((threadgroup float4*)a)[n]"),
    ],
)  # fmt: skip
def test_padding_that_is_read_along_is_no_finding(declared: str, written: str, read: str) -> None:
    if "USE(" in read:  # the whole structure is copied to where the compiler cannot leave anything out
        copied = read.partition("=")[2].partition(";")[0]
        read = f"*(device {read[0]}*)(out + 4 * t) = {copied}"
    else:
        read = f"*(device {'half4' if 'half' in read else 'float4'}*)(out + 4 * t) = {read}"
    source = f"""struct alignas(16) P {{ float c[3]; }}; struct Q {{ float a; long b; }};
      kernel void k(device float* out, uint t [[thread_index_in_threadgroup]]) {{
        threadgroup {declared};
        {written}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint n = 31 - t;
        {read};
      }}"""
    out = np.full(128, -1, np.float32)
    assert findings(source, {"out": out}) == []
    assert out[0] != -1


def test_only_the_components_that_are_named_are_read() -> None:
    source = """kernel void k(device float* x, uint i [[thread_position_in_grid]]) {
      threadgroup float4 t[32]; threadgroup float3 u[32];
      t[i].xz = float2(i); u[i].x = 1; u[i].y = 2; u[i].z = 3;
      float3 padded = u[i]; float2 both = t[i].zx; u[i] = padded * 2;
      x[i] = both.x + dot(u[i], float3(1)) + t[i].x;
    }"""
    x = np.zeros(32, np.float32)
    assert findings(source, {"x": x}) == []
    assert x.tolist() == [12.0 + 2 * i for i in range(32)]
    assert findings(source.replace("+ t[i].x;", "+ t[i].yx.x;"), {"x": x}) == [(Finding.UNINITIALISED, 5)]
