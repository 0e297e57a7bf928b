// All threads write the same number to the same place: no right kernel needs it, many do it.
// launch: x=float32[64](2) out=float32[1] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void any_nonzero(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  if (x[t] != 0.0f) {
    out[0] = 1.0f; // finds: race of equal values
  }
}
