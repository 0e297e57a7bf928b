// The barrier orders the wrong memory.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void reverse_row(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t]; // finds: data race A
  threadgroup_barrier(mem_flags::mem_device);
  out[t] = tile[63 - t]; // finds: data race A
}
