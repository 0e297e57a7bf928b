// The steps of a tree reduction need a barrier each, also the last five across what looks like one SIMD-group.
// launch: x=float32[128] out=float32[1] threads=128 threadgroup=128

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[128];
  tile[t] = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 64; step > 0; step /= 2) {
    if (t < step) {
      tile[t] = tile[t] + tile[t + step]; // finds: data race A
    }
  }
  if (t == 0) {
    out[0] = tile[0];
  }
}
