// What a threadgroup left in threadgroup memory is not there for the next one.
// launch: x=float32[4] out=float32[4] threadgroups=4 threadgroup=1

#include <metal_stdlib>
using namespace metal;

kernel void running(device const float* x, device float* out, uint i [[threadgroup_position_in_grid]]) {
  threadgroup float total;
  if (i == 0) {
    total = 0.0f;
  }
  out[i] = total + x[i]; // finds: uninitialised read
}
