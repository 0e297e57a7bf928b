// A value that no bin is for.
// launch: x=uint32[64](0..6) out=uint32[4](0) threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void histogram(device const uint* x, device atomic_uint* out, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&out[x[i]], 1u, memory_order_relaxed); // finds: out of bounds
}
