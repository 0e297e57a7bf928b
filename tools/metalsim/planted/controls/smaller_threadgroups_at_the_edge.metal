// 100 threads in groups of 64: the last group has 36.
// launch: x=float32[100] out=float32[100] threads=100 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void reverse_rows(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                         uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[n - 1 - t];
}
