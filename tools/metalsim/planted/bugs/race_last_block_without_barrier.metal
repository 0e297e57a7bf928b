// The thread that counts fences its own store; the others of its threadgroup may not have made theirs.
// launch: x=float32[256] partial=float32[256](0) count=uint32[1](0) out=float32[64](0) threadgroups=4 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* partial, device atomic_uint* count, device float* out,
                uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint before;
  partial[i] = x[i] * 2; // finds: data race A
  if (t == 0) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    before = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (before == 3) {
    out[t] = partial[t] + partial[64 + t] + partial[128 + t] + partial[192 + t]; // finds: data race A
  }
}
