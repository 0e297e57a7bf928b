// Lane 31 writes the sum, and the last SIMD-group has none.
// launch: x=float32[48] out=float32[2] threads=48 threadgroup=48

#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
                 uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[2];
  float sum = simd_sum(x[t]);
  if (lane == 31) {
    part[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 2) {
    out[t] = part[t]; // finds: uninitialised read
  }
}
