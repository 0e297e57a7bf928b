// simdgroup_barrier too must be reached by all lanes.
// launch: x=float32[32] out=float32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void swap_pairs(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  tile[t] = x[t];
  if (t < 16) {
    simdgroup_barrier(mem_flags::mem_threadgroup); // finds: divergent barrier
  }
  out[t] = tile[t];
}
