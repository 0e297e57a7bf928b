// Half of the threads wait for the other half, which never comes.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void reverse_half(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  if (t < 32) {
    tile[t] = x[t];
    threadgroup_barrier(mem_flags::mem_threadgroup); // finds: divergent barrier
    out[t] = tile[31 - t];
  } else {
    out[t] = x[t];
  }
}
