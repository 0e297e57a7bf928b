// packed_float3 has 12 bytes: neighbours share 16, not an element.
// launch: x=float32[32,3] out=float32[32,3] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void scale(device const packed_float3* x, device packed_float3* out, uint i [[thread_position_in_grid]]) {
  float3 value = x[i];
  out[i] = 2.0f * value;
}
