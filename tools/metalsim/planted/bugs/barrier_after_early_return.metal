// The ragged edge's threads leave before the barrier.
// launch: x=float32[50] out=float32[50] length=50 threadgroups=2 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void reverse_blocks(device const float* x, device float* out, constant uint& length,
                           uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  tile[t] = 0.0f;
  if (i >= length) {
    return;
  }
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup); // finds: divergent barrier
  out[i] = tile[t] + tile[0];
}
