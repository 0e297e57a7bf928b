// One writes while the other waits.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void pass(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
                 uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tile[64];
  for (uint step = 0; step < 4; step++) {
    if (step % 2 == simdgroup) {
      tile[t ^ 32] = x[t] + step;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (step % 2 != simdgroup) {
      out[t] = tile[t];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
