// Every thread fences what it stored, then one counts for all of them; in the last threadgroup every thread fences again.
// launch: x=float32[256] partial=float32[256] count=uint32[1](0) out=float32[64](0) threadgroups=4 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* partial, device atomic_uint* count, device float* out,
                uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint before;
  partial[i] = x[i] * 2;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) {
    before = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (before == 3) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    out[t] = partial[t] + partial[64 + t] + partial[128 + t] + partial[192 + t];
  }
}
