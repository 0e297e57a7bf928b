// One of the matrices of a tile is left out when the tile is emptied; in 16 bits.
// launch: a=float16[64] out=float16[256] threads=32 threadgroup=32

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void copies(device const half* a, device half* out) {
  simdgroup_half8x8 tile[2][2];
  for (int n = 0; n < 3; n++) {
    tile[n / 2][n % 2] = make_filled_simdgroup_matrix<half, 8, 8>(0.0h);
  }
  simdgroup_half8x8 left, doubled;
  simdgroup_load(left, a, 8);
  simdgroup_multiply(doubled, left, tile[1][0]);
  simdgroup_store(doubled, out, 8);
  simdgroup_store(tile[0][1], out + 64, 8);
  simdgroup_store(tile[1][0], out + 128, 8);
  simdgroup_store(tile[1][1], out + 192, 8); // finds: uninitialised read
}
