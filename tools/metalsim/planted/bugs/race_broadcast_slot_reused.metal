// The total is read by all, and the next row's is stored without waiting for them.
// launch: x=float32[3,64] out=float32[3,64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void subtract_totals(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float totals[2];
  for (uint row = 0; row < 3; row++) {
    float sum = simd_sum(x[row * 64 + t]);
    if (lane == 0) {
      totals[simdgroup] = sum; // finds: data race A
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[row * 64 + t] = x[row * 64 + t] - totals[1 - simdgroup]; // finds: data race A
  }
}
