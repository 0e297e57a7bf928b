// The first block adds to what nobody set.
// launch: x=float32[64] out=float32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void sums(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float sum[32];
  for (uint block = 0; block < 2; block++) {
    sum[t] += x[block * 32 + t]; // finds: uninitialised read
  }
  out[t] = sum[t];
}
