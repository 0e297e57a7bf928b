// What stands between a structure's members is copied, and nobody writes it.
// launch: x=float32[16] out=uint64[32] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

struct Pair {
  float first;
  ulong second;
};
kernel void pairs(device const float* x, device Pair* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup Pair pairs[16];
  threadgroup float3 rows[16];
  pairs[t].first = x[t];
  pairs[t].second = t;
  rows[t].x = rows[t].y = rows[t].z = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = pairs[15 - t];
  out[t].first += rows[15 - t].z;
}
