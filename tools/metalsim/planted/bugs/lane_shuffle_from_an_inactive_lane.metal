// The upper lanes, whose values are asked for, take no part.
// launch: x=float32[32] out=float32[32](0) threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void fold(device const float* x, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  float value = x[lane];
  if (lane < 16) {
    float other = simd_shuffle_down(value, 16); // finds: shuffle from an inactive lane; finds: SIMD-group function with idle lanes
    out[lane] = value + other;
  }
}
