// The table's unused entries hold -1, and the context is taken to be longer than it is.
// launch: pages=float32[4,16] table=int32[4](2,0,-1,-1) context=33 out=float32[64](0) threads=33 threadgroup=33

#include <metal_stdlib>
using namespace metal;

kernel void gather(device const float* pages, device const int* table, constant int& context, device float* out,
                   uint i [[thread_position_in_grid]]) {
  int page = table[i / 16];
  out[i] = pages[page * 16 + int(i % 16)]; // finds: out of bounds
}
