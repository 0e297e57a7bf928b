// Rows of 17: float4 must not be read there, packed_float4 may.
// launch: x=float32[8,17] out=float32[8,4] threads=8 threadgroup=8

#include <metal_stdlib>
using namespace metal;

kernel void heads_of_rows(device const float* x, device float4* out, uint row [[thread_position_in_grid]]) {
  out[row] = float4(*(device const packed_float4*)(x + 17 * row + 1));
}
