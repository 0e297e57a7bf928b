// Threadgroups take tickets and add to what the one before left, three hands on: what each passes on includes what it was given.
// launch: x=float32[128] running=float32[5](0) trace=float32[128] ticket=uint32[1](0) done=uint32[1](0) out=float32[1](0) threadgroups=4 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void chain(device const float* x, device float* running, device float* trace, device atomic_uint* ticket,
                  device atomic_uint* done, device float* out, uint i [[thread_position_in_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
  uint number = 0;
  if (lane == 0) {
    number = atomic_fetch_add_explicit(ticket, 1u, memory_order_relaxed);
  }
  number = simd_broadcast(number, 0);
  trace[number * 32 + lane] = x[i];
  float own = simd_sum(x[i]);
  simdgroup_barrier(mem_flags::mem_device);
  if (lane == 0 && atomic_load_explicit(done, memory_order_relaxed) == number) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    running[number + 1] = running[number] + own;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    atomic_store_explicit(done, number + 1, memory_order_relaxed);
    if (number == 3) {
      out[0] = running[4] - running[1] + trace[5] + trace[40] + trace[70] + trace[127];
    }
  }
}
