// The sum is that of half of the lanes. A kernel may mean that; so it is told as harmless.
// launch: x=float32[32] out=float32[32](0) threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void half_sums(device const float* x, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  if (lane < 16) {
    out[lane] = simd_sum(x[lane]); // finds: SIMD-group function with idle lanes
  }
}
