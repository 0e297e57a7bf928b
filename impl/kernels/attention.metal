// Attention with an online softmax, for keys and values wherever they lie: what the flash and paged kernels share.
//
// `rows` gives pointers to the features of a key and of its value: `rows.key(i)`, `rows.value(i)`, and how far apart
// neighbouring features are: `key_step`, `value_step`. `bias` gives what is added to the score of a key and -inf where
// it is hidden: `bias.at(i)`. Scores, weights and sums are float32.
//
// The largest score so far starts at -inf and stays there as long as no key is visible; nothing is subtracted from
// -inf, so that hidden keys weigh nothing and a row that sees none has a total of 0, and zeros for a result.

// SIMD-groups that may share a query row.
static constexpr constant uint ROW_SIMDGROUPS = 8;

// What a mask adds to a score.
inline float added(bool visible) {
  return visible ? 0.0f : -INFINITY;
}
inline float added(float value) {
  return value;
}

// One row of a mask, over the keys.
template <typename Mask>
struct MaskRow {
  Mask start;
  int64_t step;
  bool present;

  float at(uint key) const {
    return present ? added(start[key * step]) : 0.0f;
  }
};

// The mask of one head, a row for each query.
template <typename Mask>
struct MaskRows {
  Mask start;
  int64_t row_step;
  int64_t step;
  bool present;

  MaskRow<Mask> row(uint i) const {
    return {present ? start + i * row_step : start, step, present};
  }
};

template <typename Mask>
inline MaskRow<Mask> mask_row(Mask start, int64_t step, bool present) {
  return {start, step, present};
}
template <typename Mask>
inline MaskRows<Mask> mask_rows(Mask start, int64_t row_step, int64_t step, bool present) {
  return {start, row_step, step, present};
}

// In the place of either where there is never a mask.
struct NoMask {
  float at(uint) const {
    return 0.0f;
  }
  NoMask row(uint) const {
    return *this;
  }
};
inline NoMask no_mask() {
  return {};
}

// What mask_kind says.
static constexpr constant int CAUSAL = 1;
static constexpr constant int MASKED = 2;

// Keys and values of one head that lie in one array each, `apart` from one another.
template <typename Keys, typename Values>
struct ContiguousRows {
  Keys keys;
  Values values;
  int64_t keys_apart;
  int64_t values_apart;
  int64_t key_step;
  int64_t value_step;

  Keys key(uint i) const {
    return keys + i * keys_apart;
  }
  Values value(uint i) const {
    return values + i * values_apart;
  }
};

template <typename Keys, typename Values>
inline ContiguousRows<Keys, Values> contiguous_rows(
    Keys keys, Values values, int64_t keys_apart, int64_t values_apart, int64_t key_step, int64_t value_step) {
  return {keys, values, keys_apart, values_apart, key_step, value_step};
}

// Keys and values of one head that lie in pages: keys and values point to the head in page 0, the table names the pages of
// a request, page_apart and dim are the distances of pages and of tokens.
template <typename Keys, typename Values, typename Table>
struct PagedRows {
  Keys keys;
  Values values;
  Table table;
  uint page_size;
  size_t page_apart;
  uint dim;
  int64_t key_step;
  int64_t value_step;

  size_t offset(uint i) const {
    return table[i / page_size] * page_apart + size_t(i % page_size) * dim;
  }
  Keys key(uint i) const {
    return keys + offset(i);
  }
  Values value(uint i) const {
    return values + offset(i);
  }
};

template <typename Keys, typename Values, typename Table>
inline PagedRows<Keys, Values, Table> paged_rows(
    Keys keys, Values values, Table table, uint page_size, size_t page_apart, uint dim) {
  return {keys, values, table, page_size, page_apart, dim, 1, 1};
}

// How many of `keys` keys row `row` of `rows` sees: the last row sees all, the one before it one fewer …
inline uint visible_keys(uint row, uint rows, uint keys, bool causal) {
  const int64_t last = causal ? int64_t(keys) - int64_t(rows) + row + 1 : int64_t(keys);
  return last < 0 ? 0 : static_cast<uint>(last);
}

// A query row against the keys first, first + stride … below `last`, by one SIMD-group whose lanes share the features:
// lane l has l, l + 32 …, SHARE of them, of which those below `dim` exist.
// query: scaled; top, total and sum: the largest score, and the sums of weights and of weighted values, relative to it.
template <int SHARE, typename Rows, typename Bias>
inline void attend_row(
    thread const float* query,
    Rows rows,
    Bias bias,
    uint first,
    uint last,
    uint stride,
    uint dim,
    uint lane,
    thread float& top,
    thread float& total,
    thread float* sum) {
  for (uint key = first; key < last; key += stride) {
    const float offset = bias.at(key);
    if (offset == -INFINITY) {
      continue;  // in every lane: a hidden key is not read
    }
    const auto features = rows.key(key);
    float product = 0.0f;
    for (int i = 0; i < SHARE; i++) {
      const uint feature = lane + 32 * i;
      if (feature < dim) {
        product += query[i] * wide(features[feature * rows.key_step]);
      }
    }
    const float score = simd_sum(product) + offset;
    if (score == -INFINITY) {
      continue;
    }
    const float highest = max(top, score);
    const float correction = exp(top - highest);
    const float weight = exp(score - highest);
    top = highest;
    total = total * correction + weight;
    const auto values = rows.value(key);
    for (int i = 0; i < SHARE; i++) {
      const uint feature = lane + 32 * i;
      if (feature < dim) {
        sum[i] = sum[i] * correction + weight * wide(values[feature * rows.value_step]);
      }
    }
  }
}

// A query row by a threadgroup: SIMD-group s takes the keys s, s + simdgroups …, and their sums are put together.
// query and out: rows of dim features, step apart. sums: threadgroup memory for ROW_SIMDGROUPS·DIM numbers; tops and
// totals: for ROW_SIMDGROUPS. One barrier, between writing them and reading those of the others, where there are others.
template <typename T, int DIM, typename Query, typename Rows, typename Bias>
inline void attend_row_together(
    Query query,
    int64_t query_step,
    device T* out,
    float scale,
    Rows rows,
    Bias bias,
    uint keys,
    uint dim,
    uint lane,
    uint simdgroup,
    uint simdgroups,
    threadgroup float* sums,
    threadgroup float* tops,
    threadgroup float* totals) {
  constexpr int SHARE = DIM / 32;
  float share[SHARE];
  float sum[SHARE];
  for (int i = 0; i < SHARE; i++) {
    const uint feature = lane + 32 * i;
    share[i] = feature < dim ? wide(query[feature * query_step]) * scale : 0.0f;
    sum[i] = 0.0f;
  }
  float top = -INFINITY;
  float total = 0.0f;
  attend_row<SHARE>(share, rows, bias, simdgroup, keys, simdgroups, dim, lane, top, total, sum);

  if (simdgroups == 1) {
    for (int i = 0; i < SHARE; i++) {
      const uint feature = lane + 32 * i;
      if (feature < dim) {
        out[feature] = static_cast<T>(total == 0.0f ? 0.0f : sum[i] / total);
      }
    }
    return;
  }
  for (int i = 0; i < SHARE; i++) {
    const uint feature = lane + 32 * i;
    if (feature < dim) {
      sums[simdgroup * DIM + feature] = sum[i];
    }
  }
  if (lane == 0) {
    tops[simdgroup] = top;
    totals[simdgroup] = total;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);

  const float own = lane < simdgroups ? tops[lane] : -INFINITY;
  const float highest = simd_max(own);
  const float correction = own == -INFINITY ? 0.0f : exp(own - highest);
  const float whole = simd_sum(lane < simdgroups ? correction * totals[lane] : 0.0f);
  float corrections[ROW_SIMDGROUPS];
  for (uint other = 0; other < simdgroups; other++) {
    corrections[other] = simd_broadcast(correction, static_cast<ushort>(other));
  }
  for (uint feature = simdgroup * 32 + lane; feature < dim; feature += simdgroups * 32) {
    float all = 0.0f;
    for (uint other = 0; other < simdgroups; other++) {
      all += corrections[other] * sums[other * DIM + feature];
    }
    out[feature] = static_cast<T>(whole == 0.0f ? 0.0f : all / whole);
  }
}

// Keys of a tile: as many as keep a tile of keys and one of values within 18 KiB, a multiple of 8.
constexpr int tile_keys(int dim) {
  return dim <= 64 ? 32 : dim <= 80 ? 24 : dim <= 128 ? 16 : 8;
}
// From one row of a tile to the next: 4 more than a row has, so that a column of an 8x8 matrix lies in different banks.
constexpr int tile_apart(int dim) {
  return dim + 4;
}

// The largest, or the sum, of what the lanes hold that have one row of an 8x8 matrix between them (fragment_place).
inline float row_max(float value) {
  value = max(value, simd_shuffle_xor(value, 1));
  return max(value, simd_shuffle_xor(value, 8));
}
inline float row_sum(float value) {
  value += simd_shuffle_xor(value, 1);
  return value + simd_shuffle_xor(value, 8);
}

// Brings the keys first … first + KEYS - 1 and their values to threadgroup memory, in float32: a row for each SIMD-group in
// turn, a feature for each lane. What lies past `last` or `dim` is zeros and is not read.
template <int DIM, typename Rows>
inline void stage(
    Rows rows,
    uint first,
    uint last,
    uint dim,
    uint lane,
    uint simdgroup,
    uint simdgroups,
    threadgroup float* key_tile,
    threadgroup float* value_tile) {
  for (uint i = simdgroup; i < uint(tile_keys(DIM)); i += simdgroups) {
    const uint place = i * tile_apart(DIM);
    if (first + i < last) {
      const auto key = rows.key(first + i);
      const auto value = rows.value(first + i);
      for (uint feature = lane; feature < uint(DIM); feature += 32) {
        key_tile[place + feature] = feature < dim ? wide(key[feature * rows.key_step]) : 0.0f;
        value_tile[place + feature] = feature < dim ? wide(value[feature * rows.value_step]) : 0.0f;
      }
    } else {
      for (uint feature = lane; feature < uint(DIM); feature += 32) {
        key_tile[place + feature] = 0.0f;
        value_tile[place + feature] = 0.0f;
      }
    }
  }
}

// Query rows first_row … of `rows` against `keys` keys by a threadgroup: eight rows to a SIMD-group, held in registers with
// their results as 8x8 matrices, against tiles of keys and values that all SIMD-groups share.
// query, out: where row 0 is; query_row, query_step: from one row or feature to the next. masks.row(r): the bias of a row.
// Tiles that no row of the threadgroup sees are not brought, and those that no row of a SIMD-group sees not multiplied.
// Two barriers to a tile: it is complete before it is multiplied, and multiplied before the next is written over it.
template <typename T, int DIM, typename Query, typename Rows, typename Masks>
inline void attend_tiles(
    Query query,
    int64_t query_row,
    int64_t query_step,
    device T* out,
    float scale,
    Rows rows_of_keys,
    Masks masks,
    uint first_row,
    uint rows,
    uint keys,
    bool causal,
    uint dim,
    uint lane,
    uint simdgroup,
    uint simdgroups,
    threadgroup float* key_tile,
    threadgroup float* value_tile) {
  constexpr int BLOCKS = DIM / 8;
  constexpr int KEYS = tile_keys(DIM);
  constexpr int APART = tile_apart(DIM);
  const uint2 place = fragment_place(lane);
  const uint row = first_row + simdgroup * 8 + place.y;
  const uint seen = row < rows ? visible_keys(row, rows, keys, causal) : 0;
  const uint last_row = min(first_row + simdgroups * 8, rows) - 1;
  const uint last = visible_keys(last_row, rows, keys, causal);
  const uint own_first = first_row + simdgroup * 8;
  const uint own_last = own_first < rows ? visible_keys(min(own_first + 7, rows - 1), rows, keys, causal) : 0;

  simdgroup_float8x8 queries[BLOCKS];
  simdgroup_float8x8 sums[BLOCKS];
  for (int block = 0; block < BLOCKS; block++) {
    sums[block] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint e = 0; e < 2; e++) {
      const uint feature = block * 8 + place.x + e;
      const bool there = row < rows && feature < dim;
      queries[block].thread_elements()[e] = there ? wide(query[row * query_row + feature * query_step]) * scale : 0.0f;
    }
  }
  const auto bias = masks.row(row < rows ? row : 0);
  float top = -INFINITY;
  float total = 0.0f;  // of this lane's columns

  for (uint first = 0; first < last; first += KEYS) {
    stage<DIM>(rows_of_keys, first, last, dim, lane, simdgroup, simdgroups, key_tile, value_tile);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (first < own_last) {
      simdgroup_float8x8 scores[KEYS / 8];
      float highest = top;
      for (int n = 0; n < KEYS / 8; n++) {
        scores[n] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
        for (int block = 0; block < BLOCKS; block++) {
          simdgroup_float8x8 key;
          simdgroup_load(key, key_tile + n * 8 * APART + block * 8, APART, ulong2(0, 0), true);
          simdgroup_multiply_accumulate(scores[n], queries[block], key, scores[n]);
        }
        for (uint e = 0; e < 2; e++) {
          const uint key = first + n * 8 + place.x + e;
          const float score = key < seen ? scores[n].thread_elements()[e] + bias.at(key) : -INFINITY;
          scores[n].thread_elements()[e] = score;
          highest = max(highest, score);
        }
      }
      highest = row_max(highest);
      const float subtracted = highest == -INFINITY ? 0.0f : highest;
      const float correction = exp(top - subtracted);
      top = highest;
      total *= correction;
      for (int n = 0; n < KEYS / 8; n++) {
        for (uint e = 0; e < 2; e++) {
          const float weight = exp(scores[n].thread_elements()[e] - subtracted);
          scores[n].thread_elements()[e] = weight;
          total += weight;
        }
      }
      for (int block = 0; block < BLOCKS; block++) {
        sums[block].thread_elements()[0] *= correction;
        sums[block].thread_elements()[1] *= correction;
        for (int n = 0; n < KEYS / 8; n++) {
          simdgroup_float8x8 value;
          simdgroup_load(value, value_tile + n * 8 * APART + block * 8, APART);
          simdgroup_multiply_accumulate(sums[block], scores[n], value, sums[block]);
        }
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }

  total = row_sum(total);
  if (row < rows) {
    for (int block = 0; block < BLOCKS; block++) {
      for (uint e = 0; e < 2; e++) {
        const uint feature = block * 8 + place.x + e;
        if (feature < dim) {
          const float value = sums[block].thread_elements()[e];
          out[size_t(row) * dim + feature] = static_cast<T>(total == 0.0f ? 0.0f : value / total);
        }
      }
    }
  }
}
