// Lanes that do not come leave their two elements as they were.
// launch: x=float32[64] out=float32[64] threads=32 threadgroup=32

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void copy(device const float* x, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  if (lane % 2 == 0) {
    simdgroup_load(m, x, 8); // finds: divergent SIMD-group function
  }
  simdgroup_store(m, out, 8);
}
