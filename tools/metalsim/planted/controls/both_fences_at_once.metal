// launch: x=float32[64] scratch=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void both(device const float* x, device float* scratch, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  scratch[t] = x[t];
  tile[t] = 2 * x[t];
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  out[t] = scratch[63 - t] + tile[63 - t];
}
