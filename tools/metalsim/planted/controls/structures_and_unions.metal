// launch: x=float32[32] params=int32[5](1,2,3,4,5) out=float32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

struct Params {
  int a, b;
  int rest[3];
};
union Bits {
  float f;
  uint u;
};
kernel void run(device const float* x, constant Params& params, device float* out, uint i [[thread_position_in_grid]]) {
  Params mine = params;
  Bits bits;
  bits.f = x[i];
  bits.u ^= 0x80000000u;
  threadgroup Params shared;
  if (i == 0) {
    shared = mine;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Params copy = shared;
  out[i] = bits.f + copy.a + copy.rest[i % 3];
}
