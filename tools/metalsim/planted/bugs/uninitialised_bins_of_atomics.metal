// Counting up from what was never set.
// launch: x=uint32[64](0..4) out=uint32[4] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void histogram(device const uint* x, device uint* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint bins[4];
  atomic_fetch_add_explicit(&bins[x[t]], 1u, memory_order_relaxed); // finds: uninitialised read
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 4) {
    out[t] = atomic_load_explicit(&bins[t], memory_order_relaxed);
  }
}
