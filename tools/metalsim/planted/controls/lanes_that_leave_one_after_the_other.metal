// What has returned is not missed: each sum is that of the lanes still there.
// launch: x=float32[32] out=float32[32](0) threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void leave(device const float* x, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  if (lane >= 16) {
    return;
  }
  out[lane] = simd_sum(x[lane]);
}
