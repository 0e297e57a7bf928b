// Flash attention of few queries (decode): a threadgroup for each query row.
//
// Inputs: query B×H_q×L×D, key and value B×H×S×D, mask B×H_q×L×S of bool or float32 (any where mask_kind is not
// MASKED), all with any strides; scale; mask_kind. Output: out B×H_q×L×D of dtype T, row-contiguous. DIM is D rounded up
// to a multiple of 32.
// Grid: 32 lanes for each SIMD-group of a row × H_q·L × B. The SIMD-groups, 8 at most, share the keys, the lanes of each
// the features; see attend_row_together in attention.metal for the one barrier.
// Threadgroup memory: 8·DIM + 16 numbers, 8.1 KiB at most.

threadgroup float sums[ROW_SIMDGROUPS * DIM];
threadgroup float tops[ROW_SIMDGROUPS];
threadgroup float totals[ROW_SIMDGROUPS];

const uint length = query_shape[2];
const uint heads = query_shape[1];
const uint dim = query_shape[3];
const uint keys = key_shape[2];
const uint head = threadgroup_position_in_grid.y / length;
const uint row = threadgroup_position_in_grid.y % length;
const uint batch = threadgroup_position_in_grid.z;
const uint key_head = head / (heads / key_shape[1]);
const bool masked = mask_kind == MASKED;

attend_row_together<T, DIM>(
    query + batch * query_strides[0] + head * query_strides[1] + row * query_strides[2],
    query_strides[3],
    out + ((size_t(batch) * heads + head) * length + row) * dim,
    scale,
    contiguous_rows(
        key + batch * key_strides[0] + key_head * key_strides[1],
        value + batch * value_strides[0] + key_head * value_strides[1],
        key_strides[2],
        value_strides[2],
        key_strides[3],
        value_strides[3]),
    mask_row(
        mask + (masked ? batch * mask_strides[0] + head * mask_strides[1] + row * mask_strides[2] : 0),
        mask_strides[3],
        masked),
    visible_keys(row, length, keys, mask_kind == CAUSAL),
    dim,
    thread_index_in_simdgroup,
    simdgroup_index_in_threadgroup,
    simdgroups_per_threadgroup,
    sums,
    tops,
    totals);
