// Two threadgroups add to the same element.
// launch: x=float32[128] out=float32[64](0) threads=128 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void column_sums(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i % 64] = out[i % 64] + x[i]; // finds: data race A
}
