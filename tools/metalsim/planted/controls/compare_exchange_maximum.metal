// launch: x=uint32[128](0..1000) out=uint32[1](0) threads=128 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void largest(device const uint* x, device atomic_uint* out, uint i [[thread_position_in_grid]]) {
  uint seen = atomic_load_explicit(out, memory_order_relaxed);
  while (seen < x[i] &&
         !atomic_compare_exchange_weak_explicit(out, &seen, x[i], memory_order_relaxed, memory_order_relaxed)) {
  }
}
