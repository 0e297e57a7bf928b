// A scratch buffer in device memory takes mem_device.
// launch: x=float32[64] scratch=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void reverse_row(device const float* x, device float* scratch, device float* out,
                        uint t [[thread_index_in_threadgroup]]) {
  scratch[t] = x[t]; // finds: data race A
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = scratch[63 - t]; // finds: data race A
}
