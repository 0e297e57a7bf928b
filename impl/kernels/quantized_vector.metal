// Quantised product of few rows: out = x · wᵀ for 4-bit weights, a SIMD-group for ROWS outputs of one row of x.
//
// Inputs: x B×M×I; packed W×O×(I/8) uint32, eight codes to a word, the first in the lowest bits; scales and biases
// W×O×(I/group_size); W is B or 1; group_size a multiple of 8. All row-contiguous. Output: out B×M×O of dtype T.
// Grid: 32 lanes for every ROWS outputs × M × B, in threadgroups of whole SIMD-groups.
// The lanes stride over the words of a row. A word's eight products are summed before its scale and bias are applied:
// sum x·(code·scale + bias) = scale · sum x·code + bias · sum x. simd_sum adds the lanes up: no threadgroup memory, no
// barrier, and everything around the simd_sum is the same for all lanes of a SIMD-group.

constexpr uint ROWS = 4;

const uint words = packed_shape[2];
const uint outputs = packed_shape[1];
const uint words_of_group = group_size / 8;
const uint groups = words / words_of_group;
const uint lane = thread_index_in_simdgroup;
const uint first = thread_position_in_grid.x / 32 * ROWS;
const uint rows = min(ROWS, outputs - first);
const size_t x_row = size_t(thread_position_in_grid.z) * x_shape[1] + thread_position_in_grid.y;
const size_t w_row = packed_shape[0] == 1 ? first : size_t(thread_position_in_grid.z) * outputs + first;
const auto input = x + x_row * x_shape[2];
const auto codes = packed + w_row * words;
const auto scale = scales + w_row * groups;
const auto bias = biases + w_row * groups;

float sums[ROWS] = {0.0f, 0.0f, 0.0f, 0.0f};
for (uint word = lane; word < words; word += 32) {
  float features[8];
  float whole = 0.0f;
  for (uint i = 0; i < 8; i++) {
    features[i] = wide(input[size_t(word) * 8 + i]);
    whole += features[i];
  }
  const uint group = word / words_of_group;
  for (uint row = 0; row < rows; row++) {
    const uint code = codes[size_t(row) * words + word];
    float product = 0.0f;
    for (uint i = 0; i < 8; i++) {
      product += features[i] * static_cast<float>((code >> (4 * i)) & 15);
    }
    const size_t place = size_t(row) * groups + group;
    sums[row] += product * wide(scale[place]) + whole * wide(bias[place]);
  }
}
for (uint row = 0; row < rows; row++) {
  const float sum = simd_sum(sums[row]);
  if (lane == 0) {
    out[x_row * outputs + first + row] = static_cast<T>(sum);
  }
}
