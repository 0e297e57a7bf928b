// Each half of the threads has a barrier of its own.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void halves(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  if (t < 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup); // finds: divergent barrier A
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup); // finds: divergent barrier A
  }
  out[t] = tile[63 - t];
}
