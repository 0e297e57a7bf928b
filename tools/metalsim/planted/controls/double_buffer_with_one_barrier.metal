// Two tiles need only one barrier a step: who writes the tile of before last, no one reads it any more.
// launch: x=float32[256] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void neighbours(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tiles[2][64];
  tiles[0][t] = x[t];
  float sum = 0;
  for (uint block = 0; block < 4; block++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (block < 3) {
      tiles[(block + 1) % 2][t] = x[(block + 1) * 64 + t];
    }
    sum += tiles[block % 2][63 - t];
  }
  out[t] = sum;
}
