// Threads past the edge never set what they exchange.
// launch: x=float32[40] out=float32[64] n=40 threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void largest(device const float* x, device float* out, constant int& n, uint i [[thread_position_in_grid]]) {
  half value;
  if (int(i) < n) {
    value = half(x[i]);
  }
  out[i] = float(simd_max(value)); // finds: uninitialised read
}
