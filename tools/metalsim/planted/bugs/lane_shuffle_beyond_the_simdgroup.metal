// Lane 32 is none.
// launch: x=float32[32] out=float32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void next(device const float* x, device float* out, uint lane [[thread_index_in_simdgroup]]) {
  out[lane] = simd_shuffle(x[lane], lane + 1); // finds: shuffle from an inactive lane
}
