// Quantised product of few rows, weights not transposed: out = x · w for 4-bit weights, a threadgroup for 256 columns.
//
// Inputs: x B×M×O; packed W×O×(I/8) uint32, eight codes to a word, the first in the lowest bits; scales and biases
// W×O×(I/group_size); W is B or 1; group_size a multiple of 8. All row-contiguous. Output: out B×M×I of dtype T.
// Grid: SIMDGROUPS·32 threads for every 32 words × M × B.
// Each lane has a column of words, neighbours beside each other in memory; SIMD-group s takes the rows s, s + SIMDGROUPS …
// of the weights. Their partial sums meet in threadgroup memory, where each SIMD-group adds up two of the eight codes'
// columns. Threadgroup memory: 4 KiB. One barrier, between writing the partial sums and reading those of the others;
// lanes past the last word go through it too, with nothing to read or write.

constexpr uint SIMDGROUPS = 4;
threadgroup float partial[SIMDGROUPS][8][32];

const uint words = packed_shape[2];
const uint depth = packed_shape[1];
const uint words_of_group = group_size / 8;
const uint groups = words / words_of_group;
const uint lane = thread_index_in_simdgroup;
const uint simdgroup = simdgroup_index_in_threadgroup;
const uint word = threadgroup_position_in_grid.x * 32 + lane;
const size_t x_row = size_t(threadgroup_position_in_grid.z) * x_shape[1] + threadgroup_position_in_grid.y;
const size_t w_row = packed_shape[0] == 1 ? 0 : size_t(threadgroup_position_in_grid.z) * depth;

float sums[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
if (word < words) {
  for (uint row = simdgroup; row < depth; row += SIMDGROUPS) {
    const float feature = wide(x[x_row * depth + row]);
    const uint code = packed[(w_row + row) * words + word];
    const size_t place = (w_row + row) * groups + word / words_of_group;
    const float scaled = feature * wide(scales[place]);
    const float shifted = feature * wide(biases[place]);
    for (uint i = 0; i < 8; i++) {
      sums[i] += static_cast<float>((code >> (4 * i)) & 15) * scaled + shifted;
    }
  }
}
for (uint i = 0; i < 8; i++) {
  partial[simdgroup][i][lane] = sums[i];
}
threadgroup_barrier(mem_flags::mem_threadgroup);
if (word < words) {
  for (uint i = 2 * simdgroup; i < 2 * simdgroup + 2; i++) {
    float sum = 0.0f;
    for (uint other = 0; other < SIMDGROUPS; other++) {
      sum += partial[other][i][lane];
    }
    out[(x_row * words + word) * 8 + i] = static_cast<T>(sum);
  }
}
