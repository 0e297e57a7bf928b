// Two SIMD-groups share a tile of 8x8 matrices that they have not waited for.
// launch: a=float32[8,8] b=float32[8,8] out=float32[2,8,8] threads=64 threadgroup=64

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void products(device const float* a, device const float* b, device float* out,
                     uint t [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = a[t]; // finds: data race A
  simdgroup_float8x8 left, right, sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(left, tile, 8); // finds: data race A; may find: uninitialised read
  simdgroup_load(right, b, 8);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, out + 64 * simdgroup, 8);
}
