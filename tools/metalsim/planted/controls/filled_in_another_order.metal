// Every element is written before it is read, by another thread, the last one first.
// launch: x=float32[64] out=float32[64] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void fill_backwards(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  for (int n = 1; n >= 0; n--) {
    tile[63 - (32 * n + t)] = x[32 * n + t];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint n = 0; n < 2; n++) {
    out[32 * n + t] = tile[32 * n + t];
  }
}
