// launch: pages=float32[4,16] table=int32[4](2,0,-1,-1) context=20 out=float32[64] threads=64 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void gather(device const float* pages, device const int* table, constant int& context, device float* out,
                   uint i [[thread_position_in_grid]]) {
  out[i] = int(i) < context ? pages[table[i / 16] * 16 + int(i % 16)] : 0.0f;
}
