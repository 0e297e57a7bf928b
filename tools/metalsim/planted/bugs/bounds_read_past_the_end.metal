// The grid is rounded up to whole threadgroups and nothing is guarded.
// launch: x=float32[50] out=float32[64] threads=64 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = x[i]; // finds: out of bounds
}
