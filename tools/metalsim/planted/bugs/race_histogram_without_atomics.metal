// Threads of one threadgroup count in the same bins.
// launch: x=uint32[64](0..4) out=uint32[4] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void histogram(device const uint* x, device uint* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint bins[4];
  if (t < 4) {
    bins[t] = 0;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  bins[x[t]] += 1; // finds: data race A
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 4) {
    out[t] = bins[t];
  }
}
