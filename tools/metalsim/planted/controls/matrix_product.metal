// launch: a=float32[16,8] b=float32[8,16] out=float32[16,16] threads=128 threadgroup=128

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void product(device const float* a, device const float* b, device float* out,
                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  uint row = simdgroup / 2 * 8, column = simdgroup % 2 * 8;
  simdgroup_float8x8 left, right, sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(left, a + row * 8, 8);
  simdgroup_load(right, b + column, 16);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, out + row * 16 + column, 16);
}
