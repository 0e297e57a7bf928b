// tile[y][16] is the next row's first element.
// launch: x=float32[8,16] out=float32[8,16] threads=16,8 threadgroup=16,8

#include <metal_stdlib>
using namespace metal;

kernel void shifted(device const float* x, device float* out, uint2 at [[thread_position_in_grid]]) {
  threadgroup float tile[8][16];
  tile[at.y][at.x] = x[at.y * 16 + at.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[at.y * 16 + at.x] = tile[at.y][at.x + 1]; // finds: out of bounds
}
