// The second threadgroup reads what the first one changes.
// launch: x=float32[128](random) threads=128 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void stencil(device float* x, uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  float before = i == 64 ? x[63] : 0.0f; // finds: data race A
  x[i] = x[i] + before; // finds: data race A
}
