// 70,000 rows of 40,000 need 64 bits.
// launch: x=float32[64] row=70000 stride=40000 out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void read_row(device const float* x, constant int& row, constant int& stride, device float* out,
                     uint i [[thread_position_in_grid]]) {
  int first = row * stride; // finds: overflow of a signed product
  out[i] = x[first + int(i)]; // finds: out of bounds
}
