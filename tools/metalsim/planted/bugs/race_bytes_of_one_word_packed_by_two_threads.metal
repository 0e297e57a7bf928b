// Two 4-bit codes share a byte, and two threads write it.
// launch: x=uint32[64](0..16) packed=uint8[32](0) threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void pack(device const uint* x, device uchar* packed, uint t [[thread_index_in_threadgroup]]) {
  uchar code = x[t] << (4 * (t % 2));
  packed[t / 2] = packed[t / 2] | code; // finds: data race A; may find: race of equal values
}
