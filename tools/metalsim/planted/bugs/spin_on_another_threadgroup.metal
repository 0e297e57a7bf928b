// The first threadgroup waits for the last one, which need not begin before it has ended.
// launch: flag=uint32[1](0) out=uint32[2] threadgroups=2 threadgroup=1
// timeout: 0.2

#include <metal_stdlib>
using namespace metal;

kernel void handshake(device atomic_uint* flag, device uint* out, uint i [[threadgroup_position_in_grid]],
                      uint count [[threadgroups_per_grid]]) {
  atomic_fetch_add_explicit(flag, 1u, memory_order_relaxed);
  while (atomic_load_explicit(flag, memory_order_relaxed) < count); // finds: does not end
  out[i] = i;
}
