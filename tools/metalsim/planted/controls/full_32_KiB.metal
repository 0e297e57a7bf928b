// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float keys[4096];
  threadgroup float values[4096];
  keys[t] = x[t];
  values[4095 - t] = x[t];
  out[t] = keys[t] + values[4095 - t];
}
