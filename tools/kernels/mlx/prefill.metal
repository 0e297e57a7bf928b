// MLX's attention in tiles, from the headers of its wheel, for `inferspec kernels cost` beside others of the same job: 8 heads on 2
// key/value heads, 128 queries and keys, causal, head dim 64. params is MLX's AttnParams, as 32-bit words: 1 batch row, 8 heads, D 64,
// 128 queries, 128 keys, 4 heads to a key/value head, the scale 0.125 as bits, 4 and 8 tiles, all whole, no rest, no offset, then
// three strides of 64 bits each for Q, K, V and O.
// launch: attention<float16_t,32,16,64,64,4,1> Q=float16[1,8,128,64] K=float16[1,2,128,64] V=float16[1,2,128,64] O=float16[1,8,128,64] params=int32[38](1,8,64,128,128,4,0x3e000000,4,8,4,8,0,0,0,65536,0,8192,0,64,0,16384,0,8192,0,64,0,16384,0,8192,0,64,0,65536,0,8192,0,64,0) align_Q=true align_K=true has_mask=false do_causal=true has_sinks=false save_lse=false threadgroups=4,8,1 threadgroup=32,4,1

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/attn/kernels/steel_attention.h"
