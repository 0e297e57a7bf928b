// 36 KiB in one threadgroup.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float keys[96 * 48];
  threadgroup float values[96 * 48]; // finds: threadgroup memory over 32 KiB
  keys[t] = x[t];
  values[t] = x[t];
  out[t] = keys[t] + values[t];
}
