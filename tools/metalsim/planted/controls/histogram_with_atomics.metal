// Threadgroup bins, cleared and read behind barriers, and added to the device's.
// launch: x=uint32[128](0..4) out=uint32[4](0) threads=128 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void histogram(device const uint* x, device atomic_uint* out, uint i [[thread_position_in_grid]],
                      uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint bins[4];
  if (t < 4) {
    atomic_store_explicit(&bins[t], 0u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[x[i]], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 4) {
    atomic_fetch_add_explicit(&out[t], atomic_load_explicit(&bins[t], memory_order_relaxed), memory_order_relaxed);
  }
}
