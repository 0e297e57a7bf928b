// launch: x=float32[50] out=float32[50] length=50 threadgroups=2 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float* x, device float* out, constant uint& length, uint i [[thread_position_in_grid]]) {
  if (i >= length) {
    return;
  }
  out[i] = x[i];
}
