// Flash attention of many queries (prefill): a threadgroup for eight query rows of a head to each of its SIMD-groups.
//
// Inputs: query B×H_q×L×D, key and value B×H×S×D, mask B×H_q×L×S of bool or float32 (any where mask_kind is not
// MASKED), all with any strides; scale; mask_kind. Output: out B×H_q×L×D of dtype T, row-contiguous. DIM is D rounded up
// to a multiple of 8.
// Grid: threads × blocks of rows × B·H_q; 4 SIMD-groups at most. Queries and results stay in registers, tiles of keys and
// values go through threadgroup memory; see attend_tiles in attention.metal for the two barriers.
// Threadgroup memory: a tile of keys and one of values, 17.4 KiB at most.

threadgroup float key_tile[tile_keys(DIM) * tile_apart(DIM)];
threadgroup float value_tile[tile_keys(DIM) * tile_apart(DIM)];

const uint length = query_shape[2];
const uint heads = query_shape[1];
const uint dim = query_shape[3];
const uint keys = key_shape[2];
const uint batch = threadgroup_position_in_grid.z / heads;
const uint head = threadgroup_position_in_grid.z % heads;
const uint key_head = head / (heads / key_shape[1]);
const bool masked = mask_kind == MASKED;

attend_tiles<T, DIM>(
    query + batch * query_strides[0] + head * query_strides[1],
    query_strides[2],
    query_strides[3],
    out + size_t(threadgroup_position_in_grid.z) * length * dim,
    scale,
    contiguous_rows(
        key + batch * key_strides[0] + key_head * key_strides[1],
        value + batch * value_strides[0] + key_head * value_strides[1],
        key_strides[2],
        value_strides[2],
        key_strides[3],
        value_strides[3]),
    mask_rows(
        mask + (masked ? batch * mask_strides[0] + head * mask_strides[1] : 0), mask_strides[2], mask_strides[3], masked),
    threadgroup_position_in_grid.y * simdgroups_per_threadgroup * 8,
    length,
    keys,
    mask_kind == CAUSAL,
    dim,
    thread_index_in_simdgroup,
    simdgroup_index_in_threadgroup,
    simdgroups_per_threadgroup,
    key_tile,
    value_tile);
