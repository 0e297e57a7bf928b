// Five elements into four.
// launch: x=float32[64] count=5 out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void last(device const float* x, constant int& count, device float* out, uint i [[thread_position_in_grid]]) {
  float values[4];
  for (int n = 0; n < count; n++) {
    values[n] = x[(i + n) % 64]; // finds: private array overrun
  }
  out[i] = values[i % 4];
}
