// tile[32] is the first element of the next variable.
// launch: x=float32[32] out=float32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void next(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  threadgroup float other[32];
  tile[t] = x[t];
  other[t] = 0.0f;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  threadgroup float* row = tile;
  out[t] = row[t + 1] + other[t]; // finds: out of bounds
}
