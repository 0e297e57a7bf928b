// launch: x=float32[128] out=float32[64](0) threads=128 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void column_sums(device const float* x, device atomic_float* out, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&out[i % 64], x[i], memory_order_relaxed);
}
