// All threads of a threadgroup take the same way, and threadgroups may differ.
// launch: x=float32[128] turned=true out=float32[128] threads=128 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void maybe_reverse(device const float* x, constant bool& turned, device float* out,
                          uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                          uint group [[threadgroup_position_in_grid]]) {
  threadgroup float tile[64];
  if (turned && group == 1) {
    tile[t] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = tile[63 - t];
  } else {
    out[i] = x[i];
  }
}
