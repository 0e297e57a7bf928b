// The argument is const; the cast is not.
// launch: x=float32[32] out=float32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void clear(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = x[i];
  ((device float*)x)[i] = 0.0f; // finds: write to an input
}
