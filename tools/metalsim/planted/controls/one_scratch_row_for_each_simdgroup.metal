// Re-used in a loop, with the SIMD-group's own barrier at both ends.
// launch: x=float32[256] out=float32[128] threads=128 threadgroup=128

#include <metal_stdlib>
using namespace metal;

kernel void rows(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
                 uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float scratch[4][32];
  float sum = 0;
  for (uint block = 0; block < 2; block++) {
    scratch[simdgroup][lane] = x[block * 128 + t];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    sum += scratch[simdgroup][31 - lane];
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[t] = sum;
}
