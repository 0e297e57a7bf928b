// All threads read the same words, wide and narrow.
// launch: x=float32[64] out=float32[61] threads=61 threadgroup=61

#include <metal_stdlib>
using namespace metal;

kernel void windows(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  packed_float4 window = *(device const packed_float4*)(x + i);
  out[i] = window[0] + window[1] + window[2] + window[3] - x[0];
}
