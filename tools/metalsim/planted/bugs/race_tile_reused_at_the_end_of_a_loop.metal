// The next tile overwrites the one that others still read: a barrier is missing at the end of the loop.
// launch: x=float32[256] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void neighbours(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  float sum = 0;
  for (uint block = 0; block < 4; block++) {
    tile[t] = x[block * 64 + t]; // finds: data race A
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += tile[63 - t]; // finds: data race A
  }
  out[t] = sum;
}
