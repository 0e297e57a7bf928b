// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void subtract_mean(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float mean;
  if (t == 0) {
    float sum = 0;
    for (uint n = 0; n < 64; n++) {
      sum += x[n];
    }
    mean = sum / 64;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = x[t] - mean;
}
