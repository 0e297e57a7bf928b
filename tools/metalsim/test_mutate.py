"""Barrier deletion: every barrier is found, one is taken out at a time, and MLX's own kernels do not do without theirs."""

from __future__ import annotations

import pytest

from inferspec.tools import metalsim
from inferspec.tools.metalsim import Library, Report, Schedule, launches
from inferspec.tools.metalsim.mutate import barriers, deletions, without

SOURCE = """// threadgroup_barrier(mem_flags::mem_none) is what it had before
kernel void f(device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 32) metal::simdgroup_barrier(
      mem_flags(1 | (2)));  /* threadgroup_barrier( */
  out[t] = t;
}
"""
HEADER = '#include <metal_stdlib>\nusing namespace metal;\n#include "mlx/backend/metal/kernels/utils.h"\n'
SCHEDULES = [Schedule("forward"), Schedule("random", seed=3, groups="random")]


def test_barriers_are_found_in_code_only() -> None:
    found = barriers(SOURCE)
    assert [(barrier.line, barrier.text.split("(")[0]) for barrier in found] == [
        (3, "threadgroup_barrier"),
        (4, "metal::simdgroup_barrier"),
    ]


def test_a_text_without_a_barrier_keeps_its_other_lines_and_their_numbers() -> None:
    first, second = barriers(SOURCE)
    lines = SOURCE.split("\n")
    assert without(SOURCE, first).split("\n") == [*lines[:2], "  (void)0;", *lines[3:]]
    changed = without(SOURCE, second).split("\n")
    assert changed[:3] == lines[:3]
    assert changed[3] + changed[4] == "  if (t < 32) (void)0;  /* threadgroup_barrier( */"
    assert changed[5:] == lines[5:]


def test_a_bracket_that_is_never_closed_is_told_by_line() -> None:
    with pytest.raises(ValueError, match="line 2"):
        barriers("\nthreadgroup_barrier(mem_flags::mem_none;")


@pytest.mark.usefixtures("cxx")
@pytest.mark.skipif(metalsim.mlx_headers() is None, reason="MLX's Metal headers are not installed")
@pytest.mark.parametrize(
    ("file", "launch", "lines"),
    [
        ("softmax.h", "softmax_single_row<float> in=float32[2,200] out=float32[2,200] axis_size=200 threadgroups=2 threadgroup=64", 5),
        ("logsumexp.h", "logsumexp<float> in=float32[2,200] out=float32[2] axis_size=200 threadgroups=2 threadgroup=64", 4),
        (
            "sdpa_vector.h",
            "sdpa_vector<float,64> queries=float32[2,64] keys=float32[1,9,64] values=float32[1,9,64] out=float32[2,64] gqa_factor=2 N=9"
            " k_head_stride=576 k_seq_stride=64 v_head_stride=576 v_seq_stride=64 scale=0.125 has_mask=false query_transposed=false"
            " do_causal=false bool_mask=false float_mask=false has_sinks=false threadgroups=2 threadgroup=1024",
            3,
        ),
    ],
    ids=["softmax", "logsumexp", "sdpa_vector"],
)  # fmt: skip
def test_every_barrier_of_a_kernel_of_mlx_is_needed(file: str, launch: str, lines: int) -> None:
    """lines: how many barriers the kernel has; they are the file's first, those of its other kernels follow."""
    folder = metalsim.mlx_headers()
    assert folder
    text = (folder / "mlx/backend/metal/kernels" / file).read_text()
    read = launches.read(launch)

    def run(changed: str) -> list[Report]:
        found: list[Report] = []
        library = Library(f'{HEADER}#line 1 "{file}"\n{changed}', name=file)
        for schedule in SCHEDULES:
            with metalsim.settings(mode="check", schedule=schedule, on_report=found.append):
                read.run_in(library)
        return found

    assert [metalsim.describe(report) for report in run(text)] == []
    own = barriers(text)[:lines]
    assert [(deletion.barrier.line, deletion.noticed) for deletion in deletions(text, run, own.__contains__)] == [
        (barrier.line, True) for barrier in own
    ]
