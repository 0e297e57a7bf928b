// Groups of none.
// launch: x=int32[16](5) heads=4 kv_heads=0 out=int32[16] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

kernel void head_of(device const int* x, constant int& heads, constant int& kv_heads, device int* out,
                    uint i [[thread_position_in_grid]]) {
  int ratio = heads / kv_heads; // finds: integer division by zero
  out[i] = x[i] + ratio;
}
