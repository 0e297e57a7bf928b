// Set in the first round of the loop alone: the variable of the second is a new one.
// launch: x=float32[64] out=float32[16] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  float all = 0;
  for (int round = 0; round < 2; round++) {
    float4 part;
    if (round == 0) {
      part = ((device const float4*)x)[i];
    }
    all += dot(part, float4(1.0f)); // finds: uninitialised read
  }
  out[i] = all;
}
