// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void butterfly(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]]) {
  float value = x[t];
  for (ushort step = 16; step > 0; step /= 2) {
    value += simd_shuffle_xor(value, step);
  }
  float next = simd_shuffle_down(value, 1), first = simd_broadcast(value, 0);
  out[t] = value + next + first + simd_shuffle(value, 31 - lane) + quad_shuffle_xor(value, 1);
}
