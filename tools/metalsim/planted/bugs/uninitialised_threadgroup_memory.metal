// Only half of the tile is filled.
// launch: x=float32[32] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void spread(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  if (t < 32) {
    tile[t] = x[t];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = tile[t]; // finds: uninitialised read
}
