// Within a threadgroup: the last SIMD-group to count adds up what the others left in threadgroup memory. No barrier after the first.
// launch: x=float32[256] out=float32[2](0) threadgroups=2 threadgroup=128

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                uint row [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float partial[4];
  threadgroup atomic_uint count;
  if (t == 0) {
    atomic_store_explicit(&count, 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float part = simd_sum(x[i]);
  if (lane == 0) {
    partial[simdgroup] = part;
    atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_acq_rel, thread_scope_threadgroup);
    uint before = atomic_fetch_add_explicit(&count, 1u, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_acq_rel, thread_scope_threadgroup);
    if (before == 3) {
      out[row] = partial[0] + partial[1] + partial[2] + partial[3];
    }
  }
}
