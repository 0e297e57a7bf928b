// Lanes that have returned are missing in the sum. Meant or not: it is told as harmless.
// launch: x=float32[32] length=20 out=float32[32](0) threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void mean(device const float* x, constant uint& length, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  if (lane >= length) {
    return;
  }
  out[lane] = simd_sum(x[lane]) / 32; // finds: SIMD-group function with idle lanes
}
