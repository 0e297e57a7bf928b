// Matrices that are filled, loaded, made by a product, copied or written by their lanes; loads and stores in uniform branches.
// launch: x=float32[64] out=float32[384] n=1 threads=32 threadgroup=32

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void ways(device const float* x, device float* out, constant int& n, uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[64];
  simdgroup_float8x8 loaded, product, copied, written, unused;
  simdgroup_float8x8 filled = make_filled_simdgroup_matrix<float, 8, 8>(2.0f);
  simdgroup_float8x8 diagonal(1.0f);
  if (n > 0) {
    simdgroup_load(loaded, x, 8);
  } else {
    loaded = filled;
  }
  simdgroup_multiply(product, loaded, filled);
  written.thread_elements()[0] = float(lane);
  written.thread_elements()[1] = NAN;
  copied = written;
  simdgroup_store(product, tile, 8);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 again[2];
  simdgroup_load(again[0], tile, 8);
  again[1] = again[0];
  simdgroup_multiply_accumulate(again[1], loaded, diagonal, again[1]);
  simdgroup_store(again[1], out, 8);
  simdgroup_store(copied, out + 64, 8);
  simdgroup_store(filled, out + 128, 8);
  simdgroup_store(diagonal, out + 192, 8);
  if (n == 1) {
    simdgroup_store(loaded, out + 256, 8);
  }
  simdgroup_store(product, out + 320, 8);
}
