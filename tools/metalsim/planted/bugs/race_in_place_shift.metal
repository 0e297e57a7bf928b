// A scan in place: every thread reads its neighbour's element, which that one may have changed.
// launch: x=float32[64](random) threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void differences(device float* x, uint t [[thread_index_in_threadgroup]]) {
  float before = t > 0 ? x[t - 1] : 0.0f; // finds: data race A
  x[t] = x[t] - before; // finds: data race A
}
