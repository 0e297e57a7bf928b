// The stride of the padded array on the array that is not padded.
// launch: x=float32[4,30] out=float32[4,32] threads=30,4 threadgroup=30,1

#include <metal_stdlib>
using namespace metal;

kernel void pad(device const float* x, device float* out, uint2 at [[thread_position_in_grid]]) {
  out[at.y * 32 + at.x] = x[at.y * 32 + at.x]; // finds: out of bounds
}
