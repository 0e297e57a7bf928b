// The counter never moves on for one thread.
// launch: x=float32[32] out=float32[32] threads=32 threadgroup=32
// timeout: 0.2

#include <metal_stdlib>
using namespace metal;

kernel void search(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  uint at = 0;
  while (at < 32) at += i == 7 ? 0 : 1; // finds: does not end
  out[i] = x[i];
}
