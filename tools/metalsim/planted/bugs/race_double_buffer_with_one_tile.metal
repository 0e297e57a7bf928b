// Meant as double buffering, with one buffer.
// launch: x=float32[256] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void neighbours(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  constexpr uint BUFFERS = 1;
  threadgroup float tiles[BUFFERS][64];
  tiles[0][t] = x[t];
  float sum = 0;
  for (uint block = 0; block < 4; block++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (block < 3) {
      tiles[(block + 1) % BUFFERS][t] = x[(block + 1) * 64 + t]; // finds: data race A
    }
    sum += tiles[block % BUFFERS][63 - t]; // finds: data race A
  }
  out[t] = sum;
}
