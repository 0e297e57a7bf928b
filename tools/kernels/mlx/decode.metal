// MLX's attention of one query, from the headers of its wheel, for `inferspec kernels cost` beside others of the same job:
// 8 heads on 2 key/value heads, 512 keys, head dim 64.
// launch: sdpa_vector<float16_t,64> queries=float16[1,8,1,64] keys=float16[1,2,512,64] values=float16[1,2,512,64] out=float16[1,8,1,64] gqa_factor=4 N=512 k_head_stride=32768 k_seq_stride=64 v_head_stride=32768 v_seq_stride=64 scale=0.125 has_mask=false query_transposed=false do_causal=false bool_mask=false float_mask=false has_sinks=false threadgroups=8 threadgroup=1024

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/sdpa_vector.h"
