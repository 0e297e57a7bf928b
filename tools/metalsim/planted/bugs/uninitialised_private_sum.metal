// A sum that begins with whatever was there.
// launch: x=float32[64] out=float32[16] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  float sum;
  for (int n = 0; n < 4; n++) {
    sum += x[4 * i + n]; // finds: uninitialised read
  }
  out[i] = sum;
}
