// The tile is larger than what is used.
// launch: x=float32[20] out=float32[20] threads=20 threadgroup=20

#include <metal_stdlib>
using namespace metal;

kernel void small(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
                  uint n [[threads_per_threadgroup]]) {
  threadgroup float tile[1024];
  tile[t] = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = tile[(t + 1) % n];
}
