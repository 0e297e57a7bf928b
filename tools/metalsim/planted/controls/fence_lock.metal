// A lock: taken by compare and exchange, given back by a store, a fence inside of each.
// launch: x=float32[256] total=float32[1](0) lock=uint32[1](0) threadgroups=4 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void locked_sum(device const float* x, device float* total, device atomic_uint* lock, uint i [[thread_position_in_grid]]) {
  uint expected = 0;
  while (!atomic_compare_exchange_weak_explicit(lock, &expected, 1u, memory_order_relaxed, memory_order_relaxed)) {
    expected = 0;
  }
  atomic_thread_fence(mem_flags::mem_device, memory_order_acquire, thread_scope_device);
  total[0] += x[i];
  atomic_thread_fence(mem_flags::mem_device, memory_order_release, thread_scope_device);
  atomic_store_explicit(lock, 0u, memory_order_relaxed);
}
