// launch: x=float32[64] out=uint32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void votes(device const float* x, device uint* out, uint t [[thread_index_in_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]]) {
  simd_vote vote = simd_ballot(x[t] > 0.0f);
  ulong bits = (ulong)(simd_vote::vote_t)vote;
  out[t] = simd_any(x[t] > 3.0f) ? 100u : popcount(uint(bits) & ((1u << lane) - 1u));
}
