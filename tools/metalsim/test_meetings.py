"""Lanes meet where the same calls led them, whatever lines those are on."""

from __future__ import annotations

import numpy as np
import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import Finding

HELPERS = """
inline float total(float value) {
  return simd_sum(value);
}
inline float shared_total(float value, threadgroup float* sums, uint simdgroup) {
  const float sum = simd_sum(value);
  if (simd_is_first()) {
    sums[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return sums[0] + sums[1];
}
"""
WAYS = {
    "a helper called twice": "if (t % 2) { r = total(x[t]); } else { r = total(100.0f * x[t]); }",
    "a function called twice on a line": "r = t % 2 ? simd_sum(x[t]) : simd_sum(100.0f * x[t]);",
}


def launch(body, threads=32, mode="check", **schedule):
    """The result, and what was found."""
    found = []
    kernel = metalsim.metal_kernel("meeting", ["x"], ["out"], body, header=HELPERS)
    with metalsim.settings(mode=mode, on_report=found.append, schedule=metalsim.Schedule(**schedule)):
        (out,) = kernel(
            inputs=[np.ones(threads, np.float32)],
            grid=(threads, 1, 1),
            threadgroup=(threads, 1, 1),
            output_shapes=[(threads,)],
            output_dtypes=[np.float32],
        )
    return out, {report.finding for report in found}


@pytest.mark.parametrize("mode", ["fast", "check"])
@pytest.mark.parametrize("way", WAYS)
def test_lanes_that_went_different_ways_do_not_meet(way, mode):
    out, found = launch(f"uint t = thread_position_in_grid.x; float r; {WAYS[way]} out[t] = r;", mode=mode)
    assert out.tolist() == [1600.0, 16.0] * 16
    assert found == {Finding.PARTIAL_COLLECTIVE}


def test_lanes_that_took_a_branch_meet_the_others_behind_it():
    body = "uint t = thread_position_in_grid.x; float r = 0; if (t < 4) { r = total(x[t]); }\nout[t] = r + total(10 * x[t]);"
    out, _ = launch(body)
    assert out.tolist() == [324.0] * 4 + [320.0] * 28


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
@pytest.mark.parametrize(
    "branch",
    [
        "if (s == 0) { r = shared_total(x[t], sums, s); } else { r = shared_total(2 * x[t], sums, s); }",
        "if (s == 0) { threadgroup_barrier(mem_flags::mem_none); } else { threadgroup_barrier(mem_flags::mem_none); }",
    ],
)
def test_barriers_of_two_calls_are_two_barriers(branch, order):
    head = "threadgroup float sums[2]; uint t = thread_position_in_grid.x, s = simdgroup_index_in_threadgroup; float r = 0;"
    _, found = launch(f"{head} {branch} out[t] = r;", threads=64, order=order)
    assert Finding.DIVERGENT_BARRIER in found


@pytest.mark.parametrize("order", ["forward", "reverse", "random"])
def test_a_helper_with_a_barrier_that_all_call_twice_is_right(order):
    head = (
        "threadgroup float sums[2], others[2]; uint t = thread_position_in_grid.x, s = simdgroup_index_in_threadgroup;"
    )
    body = f"{head} out[t] = shared_total(x[t], sums, s) + shared_total(2 * x[t], others, s);"
    out, found = launch(body, threads=64, order=order)
    assert set(out.tolist()) == {192.0}
    assert not found
