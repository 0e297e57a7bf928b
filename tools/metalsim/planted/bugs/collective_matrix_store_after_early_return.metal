// The lanes past the edge have gone when the matrix is stored.
// launch: x=float32[64] out=float32[64](0) n=20 threads=32 threadgroup=32

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void copy(device const float* x, device float* out, constant int& n, uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 m;
  simdgroup_load(m, x, 8);
  if (int(lane) >= n) {
    return;
  }
  simdgroup_store(m, out, 8); // finds: divergent SIMD-group function
}
