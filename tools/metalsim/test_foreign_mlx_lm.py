"""mlx-lm's Metal kernels, all of them, as the installed package has them: run through its own functions with metalsim in the
place of `mx.fast.metal_kernel`, fast and checked, against NumPy in float64.

Bounds: as in `test_foreign_kernels.py`, n float32 roundings of what is as large as the answer's largest element.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import Finding, Mode, Report

pytestmark = [
    pytest.mark.usefixtures("cxx"),
    pytest.mark.skipif(importlib.util.find_spec("mlx_lm") is None, reason="mlx-lm is not installed"),
]


@pytest.fixture(scope="module")
def module() -> Iterator[Callable[[str], ModuleType]]:
    """Import one of mlx-lm's modules anew, as on a Mac: Metal is there and the GPU is the default device."""
    importlib.import_module("mlx_lm")  # as on this machine: it asks the default device for streams
    imported: dict[str, ModuleType] = {}
    with metalsim.installed(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(mx, "default_device", lambda: mx.Device(mx.gpu))

        def get(name: str) -> ModuleType:
            if name not in imported:
                before = sys.modules.pop(f"mlx_lm.{name}", None)
                imported[name] = importlib.import_module(f"mlx_lm.{name}")
                if before is not None:  # other tests have it as it was
                    sys.modules[f"mlx_lm.{name}"] = before
            return imported[name]

        yield get


def drawn(*shape: int, seed: int = 0, positive: bool = False) -> mx.array:
    x = np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)
    return mx.array(1 / (1 + np.exp(-x)) if positive else x)


def wide(x: mx.array) -> np.ndarray:
    return np.array(x.astype(mx.float32)).astype(np.float64)


def close(got: mx.array, want: np.ndarray, roundings: int, unit: float = 2.0**-24) -> None:
    assert got.shape == want.shape
    worst = np.max(np.abs(wide(got) - want)) / (roundings * unit * np.max(np.abs(want)))
    assert worst <= 1, f"{worst:.2f} of the bound"


def gated_delta(
    q: Any, k: Any, v: Any, g: Any, beta: Any, state: Any, mask: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """The gated delta rule, step by step."""
    q, k, v, g, beta, state = (wide(x) for x in (q, k, v, g, beta, state))
    q, k = (np.repeat(x, v.shape[2] // x.shape[2], 2) for x in (q, k))
    outputs = []
    for t in range(q.shape[1]):
        decay = g[:, t, :, None, None] if g.ndim == 3 else g[:, t, :, None, :]
        new = state * decay
        delta = (v[:, t] - (new * k[:, t, :, None]).sum(-1)) * beta[:, t, :, None]
        new = new + k[:, t, :, None] * delta[..., None]
        on = np.ones(len(q), bool) if mask is None else np.array(mask)[:, t]
        outputs.append(np.where(on[:, None, None], (new * q[:, t, :, None]).sum(-1), 0))
        state = np.where(on[:, None, None, None], new, state)
    return np.stack(outputs, 1), state


def run_gated_delta(module: ModuleType, *, key: int, vector: bool, masked: bool) -> None:
    batch, steps, key_heads, value_heads, value = 2, 3, 2, 4, 24
    q, k = (drawn(batch, steps, key_heads, key, seed=n) / key**0.5 for n in (1, 2))
    v, beta = drawn(batch, steps, value_heads, value), drawn(batch, steps, value_heads, positive=True)
    g = drawn(*(batch, steps, value_heads, key)[: 4 if vector else 3], positive=True)
    state = drawn(batch, value_heads, value, key)
    mask = mx.array([[True, True, False], [True, False, False]]) if masked else None
    for kernel in (module.gated_delta_kernel, module.gated_delta_kernel_unpacked):
        got = kernel(q, k, v, g, beta, state, mask)
        for each, want in zip(got, gated_delta(q, k, v, g, beta, state, mask), strict=True):
            close(each, want, 3 * key)


def run_gated_delta_tree(module: ModuleType) -> None:
    q, k = (drawn(1, 2, 1, 128, seed=n) / 128**0.5 for n in (1, 2))
    v, beta, g, state = (
        drawn(1, 2, 2, 16),
        drawn(1, 2, 2, positive=True),
        drawn(1, 2, 2, positive=True),
        drawn(1, 2, 16, 128),
    )
    packed, tree = (
        module.gated_delta_kernel(q, k, v, g, beta, state),
        module.gated_delta_kernel_xtree(q, k, v, g, beta, state),
    )
    for a, b in zip(packed, tree, strict=True):
        assert mx.array_equal(a, b), "the packed kernel is promised to be that of the explicit tree, bit for bit"


def run_ssm(module: ModuleType) -> None:
    batch, heads, groups, dims, states = 2, 4, 2, 12, 64
    x, dt = drawn(batch, 1, heads, dims), drawn(batch, 1, heads)
    b, c = drawn(batch, 1, groups, states, seed=1), drawn(batch, 1, groups, states, seed=2)
    a_log, d, bias, state = drawn(heads), drawn(heads, seed=3), drawn(heads, seed=4), drawn(batch, heads, dims, states)
    out, new = module.ssm_update_kernel(x, a_log, b, c, d, dt, bias, state, (0.001, 100.0))
    step = np.clip(np.log1p(np.exp(wide(dt)[:, 0] + wide(bias))), 0.001, 100.0)
    decay = np.exp(-np.exp(wide(a_log)) * step)
    b, c = (np.repeat(wide(each)[:, 0], heads // groups, 1) for each in (b, c))
    want = wide(state) * decay[..., None, None] + (wide(x)[:, 0] * step[..., None])[..., None] * b[:, :, None]
    close(new, want, 16)
    close(out, ((want * c[:, :, None]).sum(-1) + wide(x)[:, 0] * wide(d)[:, None])[:, None], states + 16)


def run_wkv7(module: ModuleType) -> None:
    batch, steps, heads, dims = 2, 3, 2, 64
    r, k, v, a, b = (drawn(batch, steps, heads, dims, seed=n) / dims**0.5 for n in range(5))
    w = drawn(batch, steps, heads, dims, positive=True)
    state = drawn(batch, heads, dims, dims)
    got = module.wkv7_kernel(r, w, k, v, a, b, state)
    r, w, k, v, a, b, state = (wide(x) for x in (r, w, k, v, a, b, state))
    outputs = []
    for t in range(steps):
        removed = np.einsum("bhij,bhj,bhk->bhik", state, a[:, t], b[:, t])
        state = state * w[:, t, :, None] + v[:, t, :, :, None] * k[:, t, :, None] + removed
        outputs.append(np.einsum("bhij,bhj->bhi", state, r[:, t]))
    close(got[0], np.stack(outputs, 1), 3 * dims)
    close(got[1], state, 3 * dims)


def rms(x: np.ndarray, eps: float) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps)


def run_qk_norm(module: ModuleType) -> None:
    tokens, heads, kv_heads, dims = 5, 3, 2, 40
    x = drawn(1, tokens, 2 * (heads + kv_heads) * dims)
    q, k = module.qk_norm(x, n_heads=heads, n_kv_heads=kv_heads, head_dim=dims, eps=1e-5, query_scale=0.3)
    normed = rms(wide(x)[..., : (heads + kv_heads) * dims].reshape(1, tokens, -1, dims), 1e-5)
    close(q, normed[:, :, :heads] * 0.3, dims)
    close(k, normed[:, :, heads:], dims)


def run_qk_norm_rope(module: ModuleType) -> None:
    batch, tokens, heads, kv_heads, dims, base = 2, 3, 2, 1, 32, 10000.0
    x, offset = drawn(batch, tokens, 2 * (heads + kv_heads) * dims), mx.array([4, 9])
    q, k = module.qk_norm_rope(
        x, n_heads=heads, n_kv_heads=kv_heads, head_dim=dims, eps=1e-5, query_scale=0.3, rope_base=base, offset=offset
    )
    normed = rms(wide(x)[..., : (heads + kv_heads) * dims].reshape(batch, tokens, -1, dims), 1e-5)
    normed[:, :, :heads] *= 0.3
    angle = (np.array(offset)[:, None] + np.arange(tokens))[..., None, None] * base ** (
        -np.arange(dims // 2) / (dims // 2)
    )
    even, odd = normed[..., ::2], normed[..., 1::2]
    turned = np.stack([even * np.cos(angle) - odd * np.sin(angle), even * np.sin(angle) + odd * np.cos(angle)], -1)
    turned = turned.reshape(normed.shape)
    # An angle of 11 comes from a frequency and a product that are rounded: 12 roundings more of what the sine turns.
    close(q, turned[:, :, :heads], dims + 40)
    close(k, turned[:, :, heads:], dims + 40)


def run_norm_gate(module: ModuleType) -> None:
    """A view of heads and tokens swapped: the kernel follows strides."""
    batch, heads, length, dims = 2, 3, 5, 40
    x = drawn(batch, length, heads, dims).swapaxes(1, 2)
    gate = drawn(batch, length, heads * dims, seed=1)
    got = module.rms_norm_sigmoid_gate(x, gate, eps=1e-5)
    want = rms(wide(x).swapaxes(1, 2), 1e-5).reshape(batch, length, -1) / (1 + np.exp(-wide(gate)))
    close(got, want, dims + 16)


def run_routing(module: ModuleType) -> None:
    logits, bias = drawn(7, 45), drawn(45, seed=1)
    inds, weights = module.expert_routing(logits, bias, top_k=4, multiplier=0.7, score_eps=1e-6, route_scale=2.0)
    score = 1 / (1 + np.exp(-0.7 * wide(logits)))
    order = np.argsort(-(score + wide(bias)), -1, kind="stable")[:, :4]
    assert np.array_equal(np.array(inds), order)
    chosen = np.take_along_axis(score, order, -1)
    close(weights, chosen / (chosen.sum(-1, keepdims=True) + 1e-6) * 2, 24)


def run_norm_add_norm(module: ModuleType) -> None:
    dims = 520  # two SIMD-groups for each row
    branch, stream = drawn(3, dims), drawn(3, dims, seed=1)
    alpha, beta, weight = drawn(dims, seed=2), drawn(dims, seed=3), drawn(dims, seed=4)
    norm = nn.RMSNorm(dims, eps=1e-4)
    norm.weight = drawn(dims, seed=5)
    want = wide(alpha) * wide(stream) + wide(beta) * rms(wide(branch) * wide(weight), 1e-5)
    normed = rms(want, 1e-4) * wide(norm.weight)
    for next_norm in (norm, None):
        got = module.norm_add_norm(
            branch, stream, alpha=alpha, beta=beta, post_weight=weight, post_eps=1e-5, next_norm=next_norm
        )
        close(got[0], want, dims)
        if next_norm:
            close(got[1], normed, 2 * dims)
    close(module.pre_norm(stream, norm, dtype=mx.float32), rms(wide(stream), 1e-4) * wide(norm.weight), dims)


def run_combine(module: ModuleType) -> None:
    experts, weights, norm = drawn(3, 4, 520), drawn(3, 4, positive=True), drawn(520, seed=1)
    got = module.post_expert_norm_combine(experts, weights, norm_weight=norm, eps=1e-5)
    close(got, (rms(wide(experts) * wide(norm), 1e-5) * wide(weights)[..., None]).sum(1), 520)


def run_attention_residual(module: ModuleType) -> None:
    blocks = module.ResidualBlocks(1e-5)
    for n in range(3):
        blocks.append(drawn(5, 72, seed=n))
    partial, weight = drawn(5, 72, seed=3), drawn(72, seed=4) / 8
    got = module._attn_res_mix(blocks, partial, weight, 1e-5)
    values = np.stack([*(wide(blocks.raw)), wide(partial)])
    logits = (rms(values, 1e-5) * wide(weight)).sum(-1)
    p = np.exp(logits - logits.max(0))
    close(got, (values * (p / p.sum(0))[..., None]).sum(0), 72 + 64)


def run_sinkhorn(module: ModuleType) -> None:
    comb = drawn(5, 4, 4, positive=True)
    got = module._sinkhorn(comb, iters=3, eps=mx.array([1e-6]))
    want = wide(comb)
    for step in range(5):
        want = want / (want.sum(-1 if step % 2 else -2, keepdims=True) + 1e-6)
    close(got, want, 5 * 8)


def run_bitlinear(module: ModuleType) -> None:
    rows, width, outputs = 3, 264, 24
    layer = module.BitLinear(width, outputs, bias=False)
    codes = np.random.default_rng(1).integers(0, 3, (4, outputs // 4, width))
    layer.weight = mx.array((codes << np.array([0, 2, 4, 6])[:, None, None]).sum(0).astype(np.uint8))
    layer.weight_scale = mx.array([0.7])
    x = drawn(rows, width)
    got = layer.execute_matmul_kernel(x, layer.weight)
    close(got, wide(x) @ (codes.reshape(outputs, width) - 1).T * np.float32(0.7), width)


CLEAN: dict[str, tuple[str, Callable[[ModuleType], None]]] = {
    "gated delta, packed": ("models.gated_delta", lambda m: run_gated_delta(m, key=128, vector=False, masked=False)),
    "gated delta": ("models.gated_delta", lambda m: run_gated_delta(m, key=64, vector=False, masked=False)),
    "gated delta, masked": ("models.gated_delta", lambda m: run_gated_delta(m, key=64, vector=False, masked=True)),
    "gated delta, a gate for each key": (
        "models.gated_delta",
        lambda m: run_gated_delta(m, key=64, vector=True, masked=False),
    ),
    "gated delta, both": ("models.gated_delta", lambda m: run_gated_delta(m, key=64, vector=True, masked=True)),
    "gated delta, explicit tree": ("models.gated_delta", run_gated_delta_tree),
    "ssm": ("models.ssm", run_ssm),
    "wkv7": ("models.rwkv7", run_wkv7),
    "attention residual": ("models.kimi_k3", run_attention_residual),
    "sinkhorn": ("models.deepseek_v41", run_sinkhorn),
    "bitlinear": ("models.bitlinear_layers", run_bitlinear),
    "qk_norm": ("kernels.qk_norm", run_qk_norm),
    "qk_norm_rope": ("kernels.qk_norm_rope", run_qk_norm_rope),
    "rms_norm_sigmoid_gate": ("kernels.rms_norm_sigmoid_gate", run_norm_gate),
    "expert_routing": ("kernels.expert_routing", run_routing),
    "norm_add_norm": ("kernels.norm_add_norm", run_norm_add_norm),
    "post_expert_norm_combine": ("kernels.post_expert_norm_combine", run_combine),
}


@pytest.mark.parametrize("mode", [Mode.FAST, Mode.CHECK])
@pytest.mark.parametrize("case", CLEAN)
def test_right_kernels_are_right_and_clean(case: str, mode: Mode, module: Callable[[str], ModuleType]) -> None:
    name, run = CLEAN[case]
    if importlib.util.find_spec(f"mlx_lm.{name}") is None:
        pytest.skip(f"this mlx-lm has no {name}")
    launched: list[Any] = []
    with metalsim.settings(mode=mode, on_launch=lambda launch, _: launched.append(launch)):
        run(module(name))
    assert launched, "a kernel must have run, or this shows nothing"


# The losses: kernels of 1024 threads for each row.
ROWS, VOCABULARY = 2, 4999


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def kl(logits_q: mx.array, logits_p: mx.array) -> np.ndarray:
    p, q = softmax(wide(logits_p)), softmax(wide(logits_q))
    return (p * np.log(p / q)).sum(-1)


def js(logits_q: mx.array, logits_p: mx.array) -> np.ndarray:
    p, q = softmax(wide(logits_p)), softmax(wide(logits_q))
    m = (p + q) / 2
    return ((p * np.log(p / m)).sum(-1) + (q * np.log(q / m)).sum(-1)) / 2


LOSSES: dict[str, tuple[str, Callable[[mx.array, mx.array], np.ndarray]]] = {
    "kl_div_loss": ("_kl_forward_kernel", kl),
    "js_div_loss": ("_js_forward_kernel", js),
}
READ, WRITE = "max_q = shared[simd_lane_id * 2 + 0];", "shared[simd_group_id * 2 + 0] = sum_exp_q;"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"


@pytest.mark.parametrize("loss", LOSSES)
def test_the_losses_are_right_and_clean_once_their_barriers_are(
    loss: str, module: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = module("tuner.losses")
    name, reference = LOSSES[loss]
    racing = getattr(losses, name)
    source = racing.source.replace("mem_flags::mem_none", "mem_flags::mem_threadgroup")
    source = source.replace("max_p = shared[simd_lane_id * 2 + 1];", f"max_p = shared[simd_lane_id * 2 + 1]; {BARRIER}")
    fixed = mx.fast.metal_kernel(f"{loss}_fixed", racing.input_names, racing.output_names, source)
    monkeypatch.setattr(losses, name, fixed)
    q, p = drawn(ROWS, VOCABULARY), drawn(ROWS, VOCABULARY, seed=1)
    with metalsim.settings(mode="check"):
        got = getattr(losses, loss)(q, p)
    # A thread adds up 5 terms of each row, then come two trees of 32; a term's exponent and logarithm are of up to 10.
    close(got, reference(q, p), 5 + 10 + 4 * 12)


def places(source: str, *statements: str) -> list[set[int]]:
    lines = source.split("\n")
    return [{n for n, line in enumerate(lines, 1) if line.strip() == each} for each in statements]


@pytest.mark.parametrize("loss", LOSSES)
def test_the_known_race_of_the_losses_is_reported_with_both_its_lines(
    loss: str, module: Callable[[str], ModuleType]
) -> None:
    """mlx-lm's issue 1700: maxima and sums go through the same threadgroup memory, and no barrier stands between the last
    read of the maxima and the first write of the sums."""
    losses = module("tuner.losses")
    kernel, _ = LOSSES[loss]
    source = getattr(losses, kernel).source
    read, write = places(source, READ, WRITE)
    between = source.split("\n")[min(read) : min(write)]
    if any("threadgroup_barrier" in line for line in between):
        pytest.skip("this mlx-lm has a barrier there")
    found: list[Report] = []
    q, p = drawn(1, 200), drawn(1, 200, seed=1)
    with metalsim.settings(mode="check", on_report=found.append):
        mx.eval(getattr(losses, loss)(q, p))
    pairs = {
        frozenset((r.access.site.line, r.other.site.line))
        for r in found
        if r.finding is Finding.RACE and r.memory == "threadgroup shared" and r.access.site and r.other and r.other.site
    }
    assert frozenset((min(read), min(write))) in pairs
    assert {Path(r.access.site.file).name for r in found if r.access.site} == {
        f"{kernel.strip('_').removesuffix('_kernel')}.metal"
    }
    assert {r.finding for r in found} <= {Finding.RACE, Finding.UNINITIALISED, Finding.SAME_VALUE_RACE}
