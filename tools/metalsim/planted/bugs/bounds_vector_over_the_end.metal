// A row of 30 is read by vectors of four: the last one ends behind the array.
// launch: x=float32[30] out=float32[32] threads=8 threadgroup=8

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const packed_float4* x, device float4* out, uint i [[thread_position_in_grid]]) {
  out[i] = float4(x[i]); // finds: out of bounds
}
