// The sums of the SIMD-groups are added up before they are all there.
// launch: x=float32[512] out=float32[2] threads=512 threadgroup=256

#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                 uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[8];
  float sum = simd_sum(x[i]);
  if (lane == 0) {
    partial[simdgroup] = sum; // finds: data race A
  }
  if (simdgroup == 0) {
    float part = lane < 8 ? partial[lane] : 0.0f; // finds: data race A; may find: uninitialised read
    sum = simd_sum(part);
    if (lane == 0) {
      out[row] = sum;
    }
  }
}
