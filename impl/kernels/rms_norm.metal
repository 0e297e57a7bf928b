// RMS norm: one threadgroup for each row.
//
// Inputs: x rows×width, weight width, both row-contiguous; eps. Output: out rows×width of dtype T.
// Grid: threads × rows, a whole number of SIMD-groups of threads to a row.
// Each thread strides over the row twice: once for its squares, summed in float32 by lane, SIMD-group and threadgroup, and
// once to scale. The quotient is rounded to T before it is multiplied by the weight, which a float32 product of two
// half-precision numbers does exactly, and rounded again.
// Threadgroup memory: 128 bytes. One barrier, in threadgroup_sum, where there is more than one SIMD-group.

threadgroup float partial[32];

const uint width = x_shape[1];
const uint thread_index = thread_position_in_threadgroup.x;
const uint threads = threads_per_threadgroup.x;
const auto row = x + size_t(threadgroup_position_in_grid.y) * width;
const auto result = out + size_t(threadgroup_position_in_grid.y) * width;

float squares = 0.0f;
for (uint i = thread_index; i < width; i += threads) {
  const float feature = wide(row[i]);
  squares += feature * feature;
}
const float total = threadgroup_sum(
    squares, partial, thread_index_in_simdgroup, simdgroup_index_in_threadgroup, simdgroups_per_threadgroup);
const float inverse = precise::rsqrt(total / static_cast<float>(width) + eps);

for (uint i = thread_index; i < width; i += threads) {
  const T quotient = static_cast<T>(wide(row[i]) * inverse);
  result[i] = static_cast<T>(wide(quotient) * wide(weight[i]));
}
