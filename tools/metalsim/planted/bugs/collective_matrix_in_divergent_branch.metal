// Matrices of a SIMD-group are spread over all its lanes.
// launch: x=float32[8,8] out=float32[8,8] threads=32 threadgroup=32

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void square(device const float* x, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 matrix, sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(matrix, x, 8);
  if (lane < 16) {
    simdgroup_multiply(sum, matrix, matrix); // finds: divergent SIMD-group function
  }
  simdgroup_store(sum, out, 8);
}
