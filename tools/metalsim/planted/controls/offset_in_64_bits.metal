// The same offset as goes wrong in 32 bits, which comes back into the array.
// launch: x=float32[64] row=70000 stride=40000 base=2799999990 out=float32[50] threads=50 threadgroup=50

#include <metal_stdlib>
using namespace metal;

kernel void read_row(device const float* x, constant int& row, constant int& stride, constant long& base, device float* out,
                     uint i [[thread_position_in_grid]]) {
  out[i] = x[long(row) * stride - base + i];
}
