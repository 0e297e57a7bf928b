// The last 8x8 tile of a matrix of 12 rows.
// launch: x=float32[12,8] out=float32[2,8,8] threads=64 threadgroup=32

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void tiles(device const float* x, device float* out, uint tile [[threadgroup_position_in_grid]]) {
  simdgroup_float8x8 matrix;
  simdgroup_load(matrix, x + tile * 64, 8); // finds: out of bounds
  simdgroup_store(matrix, out + tile * 64, 8);
}
