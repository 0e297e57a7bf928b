// Component by component, too.
// launch: out=int32[64] size=70000 threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void places(device int2* out, constant int& size, uint i [[thread_position_in_grid]]) {
  int2 place = int2(int(i), size);
  out[i] = place * size; // finds: overflow of a signed product
}
