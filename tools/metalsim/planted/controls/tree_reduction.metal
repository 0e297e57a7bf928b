// launch: x=float32[128] out=float32[1] threads=128 threadgroup=128

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[128];
  tile[t] = x[t];
  for (uint step = 64; step > 0; step /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < step) {
      tile[t] = tile[t] + tile[t + step];
    }
  }
  if (t == 0) {
    out[0] = tile[0];
  }
}
