// Paged attention of few queries (decode): a threadgroup for each query row.
//
// Inputs: query B×H_q×L×D; key_pages and value_pages P×H×page×D; block_table B×max_pages, the pages of each request in
// order; context_lens B, the tokens of each, the L queries' own among them; scale; causal. All row-contiguous. Output: out
// B×H_q×L×D of dtype T. DIM is D rounded up to a multiple of 32.
// Grid: 32 lanes for each SIMD-group of a row × H_q·L × B. The SIMD-groups, 8 at most, share the keys, the lanes of each
// the features; see attend_row_together in attention.metal for the one barrier. Table entries past a request's last page
// and slots past its last token are never read.
// Threadgroup memory: 8·DIM + 16 numbers, 8.1 KiB at most.

threadgroup float sums[ROW_SIMDGROUPS * DIM];
threadgroup float tops[ROW_SIMDGROUPS];
threadgroup float totals[ROW_SIMDGROUPS];

const uint length = query_shape[2];
const uint heads = query_shape[1];
const uint dim = query_shape[3];
const uint head = threadgroup_position_in_grid.y / length;
const uint row = threadgroup_position_in_grid.y % length;
const uint batch = threadgroup_position_in_grid.z;
const uint key_heads = key_pages_shape[1];
const uint page_size = key_pages_shape[2];
const uint key_head = head / (heads / key_heads);
const size_t place = ((size_t(batch) * heads + head) * length + row) * dim;

attend_row_together<T, DIM>(
    query + place,
    1,
    out + place,
    scale,
    paged_rows(
        key_pages + size_t(key_head) * page_size * dim,
        value_pages + size_t(key_head) * page_size * dim,
        block_table + size_t(batch) * block_table_shape[1],
        page_size,
        size_t(key_heads) * page_size * dim,
        dim),
    no_mask(),
    visible_keys(row, length, context_lens[batch], causal),
    dim,
    thread_index_in_simdgroup,
    simdgroup_index_in_threadgroup,
    simdgroups_per_threadgroup,
    sums,
    tops,
    totals);
