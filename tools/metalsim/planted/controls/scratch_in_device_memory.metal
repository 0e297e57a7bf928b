// launch: x=float32[64] scratch=float32[64] out=float32[64] threads=64 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void reverse_rows(device const float* x, device float* scratch, device float* out, uint i [[thread_position_in_grid]],
                         uint t [[thread_index_in_threadgroup]]) {
  scratch[i] = x[i];
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = scratch[i - t + 31 - t];
}
