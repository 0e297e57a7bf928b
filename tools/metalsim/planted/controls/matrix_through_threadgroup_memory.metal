// launch: a=float16[8,8] b=float16[8,8] out=float32[7,8] threads=64 threadgroup=64

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void product(device const half* a, device const half* b, device float* out, uint t [[thread_index_in_threadgroup]],
                    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup half tiles[2][64];
  threadgroup float result[64];
  tiles[0][t] = a[t];
  tiles[1][t] = b[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup == 0) {
    simdgroup_matrix<half, 8, 8> left, right;
    simdgroup_matrix<float, 8, 8> sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    simdgroup_load(left, tiles[0], 8);
    simdgroup_load(right, tiles[1], 8, ulong2(0, 0), true);
    simdgroup_multiply_accumulate(sum, left, right, sum);
    simdgroup_store(sum, result, 8);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 56) {
    out[t] = result[t];
  }
}
