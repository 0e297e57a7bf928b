// Two passes through one tile: the barrier between reading the first and writing the second is missing.
// launch: x=float32[2,64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void two_passes(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = tile[63 - t]; // finds: data race A
  tile[t] = x[64 + t]; // finds: data race A
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = sum + tile[63 - t];
}
