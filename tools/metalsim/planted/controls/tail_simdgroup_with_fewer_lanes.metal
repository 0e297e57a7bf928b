// 40 threads: the second SIMD-group has eight lanes, and its sum is that of the eight.
// launch: x=float32[40] out=float32[2] threads=40 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                 uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  float sum = simd_sum(x[i]);
  if (lane == 0) {
    out[simdgroup] = sum;
  }
}
