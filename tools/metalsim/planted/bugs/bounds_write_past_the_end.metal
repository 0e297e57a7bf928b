// A ragged last block of rows is stored whole.
// launch: x=float32[7,16] out=float32[7,16] threads=16,8 threadgroup=16,8

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float* x, device float* out, uint2 at [[thread_position_in_grid]],
                 uint2 size [[threads_per_grid]]) {
  float value = at.y < 7 ? x[at.y * size.x + at.x] : 0.0f;
  out[at.y * size.x + at.x] = value; // finds: out of bounds
}
