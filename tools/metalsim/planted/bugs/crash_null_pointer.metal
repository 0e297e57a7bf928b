// A pointer that only one branch sets.
// launch: x=float32[8] which=0 out=float32[8] threads=8 threadgroup=8

#include <metal_stdlib>
using namespace metal;

kernel void choose(device const float* x, constant int& which, device float* out, uint i [[thread_position_in_grid]]) {
  device const float* chosen = nullptr;
  if (which == 1) {
    chosen = x;
  }
  out[i] = chosen[i]; // finds: crash
}
