// An offset in bytes used as an offset in elements, far away.
// launch: x=float32[8] offset=0x7000000000 out=float32[8] threads=8 threadgroup=8

#include <metal_stdlib>
using namespace metal;

kernel void far(device const float* x, constant long& offset, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = x[offset * 4096 + i]; // finds: crash
}
