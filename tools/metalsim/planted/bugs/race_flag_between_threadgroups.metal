// Nothing orders threadgroups: the second one must not read what the first one writes.
// launch: x=float32[128] partial=float32[4](0) out=float32[1] threadgroups=4 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* partial, device float* out, uint i [[thread_position_in_grid]],
                uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float part = simd_sum(x[i]);
  if (lane == 0) {
    partial[row] = part; // finds: data race A
  }
  threadgroup_barrier(mem_flags::mem_device);
  if (row == 3 && lane == 0) {
    out[0] = partial[0] + partial[1] + partial[2] + partial[3]; // finds: data race A
  }
}
