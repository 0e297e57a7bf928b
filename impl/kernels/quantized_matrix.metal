// Quantised product of many rows: out = x · wᵀ, or x · w where not TRANSPOSE, for 4-bit weights; a threadgroup for a
// tile of TILE×TILE outputs.
//
// Inputs: x B×M×K; packed W×O×(I/8) uint32, eight codes to a word, the first in the lowest bits; scales and biases
// W×O×(I/group_size); W is B or 1; group_size a multiple of TILE. K is I and the N outputs are O, or the other way round.
// All row-contiguous. Output: out B×M×N of dtype T. Grid: 128 threads for every TILE columns × TILE rows × B.
// In steps of TILE along K the threads bring a tile of x and a dequantised one of w to threadgroup memory, in float32 and
// with zeros for what lies outside, eight features or one word each; then each of the four SIMD-groups multiplies its
// quarter of 16×16 outputs, as 2×2 SIMD-group matrices in float32. Rows of tiles are 36 numbers apart, so that a column
// of an 8×8 matrix lies in different banks. Threadgroup memory: 9 KiB. Two barriers to a step: tiles are complete before
// they are multiplied, and multiplied before the next step writes over them.

constexpr uint TILE = 32;
constexpr uint APART = TILE + 4;
threadgroup float x_tile[TILE * APART];
threadgroup float w_tile[TILE * APART];

const uint rows = x_shape[1];
const uint depth = x_shape[2];
const uint w_rows = packed_shape[1];
const uint words = packed_shape[2];
const uint columns = TRANSPOSE ? w_rows : words * 8;
const uint words_of_group = group_size / 8;
const uint groups = words / words_of_group;
const uint lane = thread_index_in_simdgroup;
const uint first_row = threadgroup_position_in_grid.y * TILE;
const uint first_column = threadgroup_position_in_grid.x * TILE;
const size_t x_start = size_t(threadgroup_position_in_grid.z) * rows;
const size_t w_start = packed_shape[0] == 1 ? 0 : size_t(threadgroup_position_in_grid.z) * w_rows;

// What this thread brings: a row of a tile, and eight neighbours in it.
const uint tile_row = thread_index_in_threadgroup / 4;
const uint tile_word = thread_index_in_threadgroup % 4;
threadgroup float* x_part = x_tile + tile_row * APART + tile_word * 8;
threadgroup float* w_part = w_tile + tile_row * APART + tile_word * 8;

// What its SIMD-group multiplies: a quarter of the tile, nothing where that lies outside altogether.
const uint quarter_row = simdgroup_index_in_threadgroup / 2 * 16;
const uint quarter_column = simdgroup_index_in_threadgroup % 2 * 16;
const bool inside = first_row + quarter_row < rows && first_column + quarter_column < columns;
simdgroup_float8x8 sums[2][2];
for (uint i = 0; i < 2; i++) {
  for (uint j = 0; j < 2; j++) {
    sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
}

for (uint step = 0; step < depth; step += TILE) {
  const uint x_row = first_row + tile_row;
  const uint x_column = step + tile_word * 8;
  for (uint i = 0; i < 8; i++) {
    const bool there = x_row < rows && x_column + i < depth;
    x_part[i] = there ? wide(x[(x_start + x_row) * depth + x_column + i]) : 0.0f;
  }
  const uint w_row = (TRANSPOSE ? first_column : step) + tile_row;
  const uint word = (TRANSPOSE ? step : first_column) / 8 + tile_word;
  uint codes = 0;
  float scale = 0.0f;
  float bias = 0.0f;
  if (w_row < w_rows && word < words) {
    const size_t row = w_start + w_row;
    codes = packed[row * words + word];
    scale = wide(scales[row * groups + word / words_of_group]);
    bias = wide(biases[row * groups + word / words_of_group]);
  }
  for (uint i = 0; i < 8; i++) {
    w_part[i] = static_cast<float>((codes >> (4 * i)) & 15) * scale + bias;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  if (inside) {
    for (uint k = 0; k < TILE; k += 8) {
      simdgroup_float8x8 left[2];
      simdgroup_float8x8 right[2];
      for (uint i = 0; i < 2; i++) {
        const uint row = quarter_row + i * 8;
        const uint column = quarter_column + i * 8;
        simdgroup_load(left[i], x_tile + row * APART + k, APART);
        if (TRANSPOSE) {
          simdgroup_load(right[i], w_tile + column * APART + k, APART, ulong2(0, 0), true);
        } else {
          simdgroup_load(right[i], w_tile + k * APART + column, APART);
        }
      }
      for (uint i = 0; i < 2; i++) {
        for (uint j = 0; j < 2; j++) {
          simdgroup_multiply_accumulate(sums[i][j], left[i], right[j], sums[i][j]);
        }
      }
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

const uint2 place = fragment_place(lane);
for (uint i = 0; i < 2; i++) {
  for (uint j = 0; j < 2; j++) {
    const uint row = first_row + quarter_row + i * 8 + place.y;
    const uint column = first_column + quarter_column + j * 8 + place.x;
    for (uint e = 0; e < 2; e++) {
      if (row < rows && column + e < columns) {
        out[(x_start + row) * columns + column + e] = static_cast<T>(sums[i][j].thread_elements()[e]);
      }
    }
  }
}
