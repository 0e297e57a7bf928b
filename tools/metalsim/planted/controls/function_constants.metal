// launch: x=float32[64] scaled=true factor=3 out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

constant bool scaled [[function_constant(0)]];
constant int factor [[function_constant(1)]];
kernel void scale(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = scaled ? factor * x[i] : x[i];
}
