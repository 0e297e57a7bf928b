// Columns are not guarded: the last block of a row reads the next row, and of the last row nothing.
// launch: x=float32[3,20] out=float32[3,32](0) threads=32,3 threadgroup=32,1

#include <metal_stdlib>
using namespace metal;

kernel void pad(device const float* x, device float* out, uint2 at [[thread_position_in_grid]]) {
  out[at.y * 32 + at.x] = x[at.y * 20 + at.x]; // finds: out of bounds
}
