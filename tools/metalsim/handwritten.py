"""Kernels written by hand in C++ against `abi.h`, for the tests of the runtime: what it does without MSL and its rewriting."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inferspec import compiler

from . import runtime
from .process import HEADERS

# What MSL's headers would supply, as far as these kernels need it.
PRELUDE = (
    f'#line 1 "{HEADERS}/metalsim/handwritten.h"'
    + """
#include "metalsim/abi.h"
typedef unsigned uint;
enum { NO_MEMORY, DEVICE, THREADGROUP, BOTH };
enum { REDUCE = 1, SHUFFLE, SCAN, VOTE, MATRIX };
#define WHERE const char* file = __builtin_FILE(), int line = __builtin_LINE()
static inline void threadgroup_barrier(uint flags, WHERE) { msl_tg_barrier(flags, file, line); }
static inline void simdgroup_barrier(uint flags, WHERE) { msl_simd_barrier(flags, file, line); }

struct request { int in, out; uint source; };
MSL_NOSAN static void add_up(void** requests, uint mask, void*) {
  int sum = 0;
  for (uint left = mask; left; left &= left - 1) sum += ((request*)requests[__builtin_ctz(left)])->in;
  for (uint left = mask; left; left &= left - 1) ((request*)requests[__builtin_ctz(left)])->out = sum;
}
MSL_NOSAN static void exchange(void** requests, uint mask, void*) {
  for (uint left = mask; left; left &= left - 1) {
    uint lane = __builtin_ctz(left);
    request* mine = (request*)requests[lane];
    if (mask >> mine->source & 1) mine->out = ((request*)requests[mine->source])->in;
    else msl_bad_shuffle(lane, mine->source, mask);
  }
}
MSL_NOSAN static inline int simd_sum(int value, WHERE) {
  request mine = {value, 0, 0};
  msl_simd_collective(add_up, &mine, REDUCE, file, line);
  return mine.out;
}
MSL_NOSAN static inline int simd_shuffle(int value, uint source, WHERE) {
  request mine = {value, 0, source};
  msl_simd_collective(exchange, &mine, SHUFFLE, file, line);
  return mine.out;
}
MSL_NOSAN static inline void matrix_multiply(WHERE) {
  request mine = {};
  msl_simd_collective(add_up, &mine, MATRIX, file, line);
}
MSL_NOSAN __attribute__((noinline)) static void add_plainly(int* p, int value) { *p += value; }
__attribute__((always_inline)) static inline void atomic_add(int* p, int value) {
  msl_atomic_touch(p, 4, 2);
  add_plainly(p, value);
}
#define USE(value) asm volatile("" : : "r"(value))  // as if it mattered
#define SHARED(type, name, count) \\
  type (&name)[count] = *(type(*)[count])msl_tg_var(__COUNTER__, #name, sizeof(type) * (count), 16, sizeof(type) < 4 ? sizeof(type) : 4)
"""
)


def library(body: str, parameters: str, mode: runtime.Mode, globals_: str = "") -> Path:
    """A kernel whose body's first line is line 1 of ``k.metal``.

    parameters: as in ``const int* x, int* out``, by index. The body finds ``i``, ``t``, ``lane`` and ``group``: its place in the grid, the threadgroup, the SIMD-group,
    and its threadgroup's place, along x.
    """
    names = [name for name in parameters.split(", ") if name]
    arguments = ", ".join(f"({name.rpartition(' ')[0]})buffers[{index}]" for index, name in enumerate(names))
    source = f"""{PRELUDE}
{globals_}
static void kernel({parameters}) {{
  uint i = msl_cur_pos->tpig[0], t = msl_cur_pos->tiitg, lane = msl_cur_pos->lane, group = msl_tgp.tgpig[0];
  (void)i, (void)t, (void)lane, (void)group;
#line 1 "k.metal"
{body}
}}
extern "C" MSL_NOSAN void msl_entry(void* const* buffers) {{ kernel({arguments}); }}
"""
    return compiler.shared_library(
        source, runtime.COMPILE_FLAGS[mode], includes=[HEADERS], links=[runtime.runtime_library()], label="handwritten"
    )


def run(
    body: str,
    parameters: str = "",
    arrays: Mapping[str, np.ndarray] | None = None,
    *,
    threads: int | tuple[int, int, int] = 1,
    group: int | tuple[int, int, int] | None = None,
    mode: runtime.Mode = runtime.Mode.FAST,
    outputs: tuple[str, ...] = ("out",),
    initialised: tuple[str, ...] = (),
    globals_: str = "",
    **more: Any,
) -> runtime.Outcome:
    """Compiles the body and launches it over `threads` in threadgroups of `group` (of all of them by default).

    Arrays named in `outputs` are writable, and hold nothing unless named in `initialised` too.
    """
    names = [parameter.rpartition(" ")[2] for parameter in parameters.split(", ") if parameter]
    grid = (threads, 1, 1) if isinstance(threads, int) else threads
    size = grid if group is None else (group, 1, 1) if isinstance(group, int) else group
    buffers = tuple(
        runtime.Buffer(index, name, (arrays or {})[name], name in outputs, name not in outputs or name in initialised)
        for index, name in enumerate(names)
    )
    made = library(body, parameters, mode, globals_)
    return runtime.run(runtime.Launch("k", made, buffers, grid, size, mode=mode, **more))
