// launch: x=uint32[64](0..256) out=uint8[64] threads=64 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void narrow(device const uint* x, device uchar* out, uint i [[thread_position_in_grid]]) {
  out[i] = uchar(x[i]);
}
