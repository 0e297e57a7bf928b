// The value is not used, but the load is done.
// launch: x=float32[50] out=float32[64] length=50 threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float* x, device float* out, constant uint& length, uint i [[thread_position_in_grid]]) {
  float value = x[i]; // finds: out of bounds
  out[i] = i < length ? value : 0.0f;
}
