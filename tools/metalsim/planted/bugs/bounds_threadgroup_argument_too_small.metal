// The launch gives the threadgroup argument half of what the kernel takes.
// launch: x=float32[64] tile=128 out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void copy(device const float* x, threadgroup float* tile [[threadgroup(0)]], device float* out,
                 uint t [[thread_index_in_threadgroup]]) {
  tile[t] = x[t]; // finds: out of bounds
  out[t] = x[t];
}
