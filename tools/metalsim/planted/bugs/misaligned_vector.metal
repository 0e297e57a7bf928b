// float4 lies at multiples of 16 bytes.
// launch: x=float32[68] out=float32[64] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

kernel void copy_from_second(device const float* x, device float4* out, uint i [[thread_position_in_grid]]) {
  out[i] = *(device const float4*)(x + 1 + 4 * i); // finds: misaligned access
}
