// Two threads write a half each of what a third one reads as a vector.
// launch: x=float16[64] out=float16[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void swap(device const half* x, device half2* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup half2 pairs[32];
  ((threadgroup half*)pairs)[t] = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 32) {
    out[t] = pairs[t].yx;
  }
}
