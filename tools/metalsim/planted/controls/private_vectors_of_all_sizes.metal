// Vectors set as a whole from memory, from functions, from SIMD-group functions and from each other, by value and by reference.
// launch: x=float32[512] y=uint64[128] out=float32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

template <typename V>
inline void twice(V value, thread V& result) {
  result = value + value;
}
template <typename V>
inline V sum_of(V value) {
  V result, other;
  result = simd_sum(value);
  twice(result, other);
  V kept[2];
  kept[1] = other;
  kept[0] = kept[1];
  return kept[0];
}
template <typename T>
inline T exchange(T value) {
  T beside;
  beside = simd_shuffle_xor(value, 1);
  T first;
  first = simd_broadcast_first(beside);
  T largest;
  largest = max(first, value);
  return largest;
}

kernel void ways(device const float* x, device const ulong* y, device float* out, uint i [[thread_position_in_grid]]) {
  float2 two;
  two = ((device const float2*)x)[i];
  float3 three;
  three = float3(((device const packed_float3*)x)[i]);
  float4 four;
  four = ((device const float4*)x)[i];
  ulong4 wide;
  wide = ((device const ulong4*)y)[i];
  ulong3 narrow;
  narrow = wide.xyz;
  half3 halves;
  halves = half3(three);
  uchar3 bytes;
  bytes = uchar3(narrow);
  bool4 flags;
  flags = four > 0;
  bfloat4 small;
  small = bfloat4(four);
  float3 spread;
  spread.xy = two;
  spread.z = three.z;
  float4x4 matrix;
  matrix[0] = four;
  matrix[1] = matrix[0];
  out[i] = sum_of(two).x + sum_of(three).y + sum_of(four).z + float(wide.w & 1) + float(halves.z) + float(bytes.y) + float(flags.x) +
           float(small.w) + spread.z + exchange(four).x + exchange(two.x) + exchange(half(two.y)) + exchange(bytes.x) + matrix[1].x;
}
