// MLX's products with 4-bit weights, from the headers of its wheel, for `inferspec kernels cost` beside others of the same job:
// 1024×1024 weights in groups of 64, one row of x, and 64 rows.
// launch: affine_qmv_fast<float16_t,64,4,false> w=uint32[1024,128] scales=float16[1024,16] biases=float16[1024,16] x=float16[1,1024] y=float16[1,1024] in_vec_size=1024 out_vec_size=1024 x_batch_ndims=0 x_shape=int32[2] x_strides=int64[1] w_batch_ndims=0 w_shape=int32[2] w_strides=int64[1] s_strides=int64[1] b_strides=int64[1] threadgroups=1,128 threadgroup=32,2
// launch: affine_qmm_t<float16_t,64,4,true,false> w=uint32[1024,128] scales=float16[1024,16] biases=float16[1024,16] x=float16[64,1024] y=float16[64,1024] K=1024 N=1024 M=64 x_batch_ndims=0 x_shape=int32[2] x_strides=int64[1] w_batch_ndims=0 w_shape=int32[2] w_strides=int64[1] s_strides=int64[1] b_strides=int64[1] threadgroups=32,2 threadgroup=32,2,2

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
#include "mlx/backend/metal/kernels/quantized_utils.h"
#include "mlx/backend/metal/kernels/quantized.h"
