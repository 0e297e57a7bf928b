// The counter is added to with atomics, and read without.
// launch: x=uint32[64](0..2) count=uint32[1](0) out=uint32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void positions(device const uint* x, device atomic_uint* count, device uint* out,
                      uint t [[thread_index_in_threadgroup]]) {
  if (x[t]) {
    atomic_fetch_add_explicit(count, 1u, memory_order_relaxed); // finds: data race A
  }
  out[t] = *(device uint*)count; // finds: data race A
}
