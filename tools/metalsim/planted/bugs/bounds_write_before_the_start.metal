// A ring buffer's slot is counted back one too far.
// launch: x=float32[16] offset=0 out=float32[16] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

kernel void store_before(device const float* x, constant int& offset, device float* out, uint i [[thread_position_in_grid]]) {
  out[int(i) + offset - 1] = x[i]; // finds: out of bounds
}
