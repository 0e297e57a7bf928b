// Products are added to what the registers happened to hold.
// launch: a=float32[64] b=float32[64] out=float32[64] threads=32 threadgroup=32

#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void product(device const float* a, device const float* b, device float* out) {
  simdgroup_float8x8 left, right, sum;
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8);
  simdgroup_multiply_accumulate(sum, left, right, sum); // finds: uninitialised read
  simdgroup_store(sum, out, 8); // may find: uninitialised read
}
