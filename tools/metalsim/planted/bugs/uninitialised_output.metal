// An output begins with anything.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void add(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] += x[i]; // finds: uninitialised read
}
