// A threadgroup counter is set to zero by one thread and counted up by the others without a barrier between.
// launch: x=uint32[64](0..2) out=uint32[1] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void count_ones(device const uint* x, device uint* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint count;
  if (t == 0) {
    *(threadgroup uint*)&count = 0; // finds: data race A
  }
  atomic_fetch_add_explicit(&count, x[t], memory_order_relaxed); // finds: data race A; may find: uninitialised read
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) {
    out[0] = atomic_load_explicit(&count, memory_order_relaxed);
  }
}
