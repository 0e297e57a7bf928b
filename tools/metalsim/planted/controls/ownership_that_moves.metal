// Elements change hands at each barrier.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void relay(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  for (uint step = 1; step < 4; step++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile[(t + step) % 64] += 1.0f;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = tile[t];
}
