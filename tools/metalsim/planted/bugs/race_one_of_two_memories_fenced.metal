// The barrier orders threadgroup memory, and the device memory beside it is forgotten.
// launch: x=float32[64] scratch=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void mixed(device const float* x, device float* scratch, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t];
  scratch[t] = x[t]; // finds: data race A
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float a = tile[63 - t];
  float b = scratch[63 - t]; // finds: data race A
  out[t] = a + b;
}
