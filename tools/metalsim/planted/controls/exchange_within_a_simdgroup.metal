// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void swap_pairs(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = tile[t ^ 1];
  simdgroup_barrier(mem_flags::mem_none);
}
