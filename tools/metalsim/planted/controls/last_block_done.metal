// The last threadgroup to count adds up what all stored with atomics.
// launch: x=float32[128] partial=float32[4](0) count=uint32[1](0) out=float32[1](0) threadgroups=4 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void sum(device const float* x, volatile device atomic_float* partial, device atomic_uint* count, device float* out,
                uint i [[thread_position_in_grid]], uint row [[threadgroup_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]]) {
  float part = simd_sum(x[i]);
  if (lane == 0) {
    atomic_store_explicit(&partial[row], part, memory_order_relaxed);
    if (atomic_fetch_add_explicit(count, 1u, memory_order_relaxed) == 3) {
      float total = 0;
      for (int n = 0; n < 4; n++) {
        total += atomic_load_explicit(&partial[n], memory_order_relaxed);
      }
      out[0] = total;
    }
  }
}
