// All threads store and, in the last threadgroup, all read: barriers on both sides of the one that counts.
// launch: x=float32[256] partial=float32[256] count=uint32[2](0) out=float32[64](0) threadgroups=4 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* partial, device atomic_uint* count, device float* out,
                uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup bool last;
  partial[i] = x[i] * 2;
  threadgroup_barrier(mem_flags::mem_device);
  if (t == 0) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_release);
    uint before = atomic_fetch_add_explicit(&count[0], 1u, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_acquire);
    last = before == 3;
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
  if (last) {
    out[t] = partial[t] + partial[64 + t] + partial[128 + t] + partial[192 + t];
    partial[64 + t] = 0;
  }
}
