// Whole SIMD-groups that have nothing to do skip the barrier of that step.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void steps(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  float sum = 0;
  for (uint step = 0; step < 3; step++) {
    if (simdgroup == 1 && step == 2) {
      continue;
    }
    sum += x[(t + step) % 64];
    threadgroup_barrier(mem_flags::mem_none); // finds: divergent barrier
  }
  out[t] = sum;
}
