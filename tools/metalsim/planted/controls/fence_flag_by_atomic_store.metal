// Decoupled: each threadgroup publishes a value behind a flag; who finds the flag of its neighbour set takes the value, who does not
// makes it anew. Nobody waits.
// launch: x=float32[256] value=float32[8] flag=uint32[8](0) out=float32[8] threadgroups=8 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void look_back(device const float* x, device float* value, device atomic_uint* flag, device float* out,
                      uint i [[thread_position_in_grid]], uint row [[threadgroup_position_in_grid]],
                      uint lane [[thread_index_in_simdgroup]]) {
  float own = simd_sum(x[i]);
  uint left = (row + 7) % 8;
  bool there = false;
  if (lane == 0) {
    value[row] = own;
    atomic_thread_fence(mem_flags::mem_device, memory_order_acq_rel, thread_scope_device);
    atomic_store_explicit(&flag[row], 1u, memory_order_relaxed);
    there = atomic_load_explicit(&flag[left], memory_order_relaxed) != 0;
    atomic_thread_fence(mem_flags::mem_device, memory_order_acquire, thread_scope_device);
  }
  there = simd_broadcast_first(there);
  float beside = there ? value[left] : simd_sum(x[left * 32 + lane]);
  if (lane == 0) {
    out[row] = own + beside;
  }
}
