// What was released must be acquired.
// launch: x=float32[128] partial=float32[4](0) count=uint32[1](0) out=float32[1](0) threadgroups=4 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, device float* partial, device atomic_uint* count, device float* out,
                uint i [[thread_position_in_grid]], uint row [[threadgroup_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]]) {
  float part = simd_sum(x[i]);
  if (lane == 0) {
    partial[row] = part; // finds: data race A
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    uint before = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
    if (before == 3) {
      out[0] = partial[0] + partial[1] + partial[2] + partial[3]; // finds: data race A
    }
  }
}
