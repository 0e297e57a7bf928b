// Threads go round a different number of times.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void smooth(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  float sum = 0;
  for (uint step = 0; step < 1 + t / 32; step++) {
    threadgroup_barrier(mem_flags::mem_threadgroup); // finds: divergent barrier
    sum += x[(t + step) % 64];
  }
  out[t] = sum;
}
