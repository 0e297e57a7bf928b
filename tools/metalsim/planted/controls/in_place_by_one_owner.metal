// launch: x=float32[64](random) threads=64 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void square(device float* x, uint i [[thread_position_in_grid]]) {
  x[i] = x[i] * x[i];
}
