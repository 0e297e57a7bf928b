// Written as bytes, read as words behind the barrier.
// launch: x=uint32[64](0..256) out=uint32[16] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void pack(device const uint* x, device uint* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup uchar bytes[64];
  bytes[t] = uchar(x[t]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 16) {
    out[t] = *(threadgroup uint*)(bytes + 4 * t);
  }
}
