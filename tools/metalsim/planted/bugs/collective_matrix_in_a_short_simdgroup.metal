// 8x8 matrices take 32 lanes; the launch has 24.
// launch: x=float32[8,8] out=float32[8,8] threads=24 threadgroup=24

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void square(device const float* x, device float* out) {
  simdgroup_float8x8 matrix, sum;
  simdgroup_load(matrix, x, 8); // finds: divergent SIMD-group function
  simdgroup_multiply(sum, matrix, matrix); // finds: divergent SIMD-group function
  simdgroup_store(sum, out, 8); // finds: divergent SIMD-group function
}
