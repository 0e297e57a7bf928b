// The other threadgroups never hear of it.
// launch: x=float32[64] out=float32[64] count=2 threadgroups=3 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void some(device const float* x, device float* out, constant uint& count,
                 uint group [[threadgroup_position_in_grid]], uint i [[thread_position_in_grid]],
                 uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  if (group >= count) {
    return;
  }
  tile[t] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[31 - t];
}
