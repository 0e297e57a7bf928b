// Paged attention of many queries (chunked prefill): a threadgroup for eight query rows of a head to each of its
// SIMD-groups.
//
// Inputs: query B×H_q×L×D; key_pages and value_pages P×H×page×D; block_table B×max_pages, the pages of each request in
// order; context_lens B, the tokens of each, the L queries' own among them; scale; causal. All row-contiguous. Output: out
// B×H_q×L×D of dtype T. DIM is D rounded up to a multiple of 8.
// Grid: threads × blocks of rows × B·H_q; 4 SIMD-groups at most. Queries and results stay in registers, tiles of keys and
// values go through threadgroup memory; see attend_tiles in attention.metal for the two barriers. A tile may lie in several
// pages: each row of it looks its page up. Table entries past a request's last page and slots past its last token are
// never read.
// Threadgroup memory: a tile of keys and one of values, 17.4 KiB at most.

threadgroup float key_tile[tile_keys(DIM) * tile_apart(DIM)];
threadgroup float value_tile[tile_keys(DIM) * tile_apart(DIM)];

const uint length = query_shape[2];
const uint heads = query_shape[1];
const uint dim = query_shape[3];
const uint batch = threadgroup_position_in_grid.z / heads;
const uint head = threadgroup_position_in_grid.z % heads;
const uint key_heads = key_pages_shape[1];
const uint page_size = key_pages_shape[2];
const uint key_head = head / (heads / key_heads);
const size_t place = size_t(threadgroup_position_in_grid.z) * length * dim;

attend_tiles<T, DIM>(
    query + place,
    dim,
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
    threadgroup_position_in_grid.y * simdgroups_per_threadgroup * 8,
    length,
    context_lens[batch],
    causal,
    dim,
    thread_index_in_simdgroup,
    simdgroup_index_in_threadgroup,
    simdgroups_per_threadgroup,
    key_tile,
    value_tile);
