// Threads beyond the edge take part in the barrier and write nothing.
// launch: x=float32[50] out=float32[50] length=50 threadgroups=2 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void means(device const float* x, device float* out, constant uint& length, uint i [[thread_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  tile[t] = i < length ? x[i] : 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < length) {
    out[i] = 0.5f * (tile[t] + tile[t ^ 1]);
  }
}
