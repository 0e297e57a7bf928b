// The last SIMD-group of the grid has 8 lanes, and lane 31 is asked.
// launch: x=float32[40] out=float32[40] threads=40 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void last_value(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = simd_broadcast(x[i], 31); // finds: shuffle from an inactive lane
}
