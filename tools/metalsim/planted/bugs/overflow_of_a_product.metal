// A product of ints passes 2^31 before it is reduced to an index: the index is in bounds all the same.
// launch: x=float32[64] out=float32[64] row=70000 threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void gather(device const float* x, device float* out, constant int& row, uint i [[thread_position_in_grid]]) {
  int place = row * row; // finds: overflow of a signed product
  out[i] = x[(uint(place) + i) % 64];
}
