// Of a SIMD-group by its function, of the threadgroup by a second stage.
// launch: x=uint32[128](0..9) out=uint32[128] threads=128 threadgroup=128

#include <metal_stdlib>
using namespace metal;

kernel void scan(device const uint* x, device uint* out, uint t [[thread_index_in_threadgroup]],
                 uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup uint totals[4];
  uint sum = simd_prefix_inclusive_sum(x[t]);
  if (lane == 31) {
    totals[simdgroup] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint before = 0; before < simdgroup; before++) {
    sum += totals[before];
  }
  out[t] = sum;
}
