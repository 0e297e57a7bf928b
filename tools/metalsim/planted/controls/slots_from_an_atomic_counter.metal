// Each thread writes the slot that it got: all different.
// launch: x=uint32[64](0..2) count=uint32[1](0) out=uint32[64](0) threads=64 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void compact(device const uint* x, device atomic_uint* count, device uint* out, uint i [[thread_position_in_grid]]) {
  if (x[i]) {
    out[atomic_fetch_add_explicit(count, 1u, memory_order_relaxed)] = i;
  }
}
