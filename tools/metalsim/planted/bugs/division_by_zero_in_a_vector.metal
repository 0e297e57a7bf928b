// Each component is divided.
// launch: x=uint32[4](0) out=uint32[4] threads=1 threadgroup=1

#include <metal_stdlib>
using namespace metal;

kernel void quotients(device const uint4* x, device uint4* out, uint i [[thread_position_in_grid]]) {
  out[i] = uint4(7) / x[i]; // finds: integer division by zero
}
