// An element is read and written by one thread only, however many barriers are between.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void accumulate(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float sums[64];
  sums[t] = 0.0f;
  for (uint step = 0; step < 3; step++) {
    sums[t] += x[(t + step) % 64];
    threadgroup_barrier(mem_flags::mem_none);
    sums[t] *= 0.5f;
  }
  out[t] = sums[t];
}
