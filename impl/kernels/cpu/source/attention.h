// Scaled dot-product attention that never holds a row of logits: of dense keys and values, and of those in the pages of a
// pool. Everything between the inputs and the result is computed in float32; the result is rounded once.
#pragma once

#include <cstdint>

#include "dtypes.h"

namespace inferspec {

enum class MaskKind : int { NONE = 0, CAUSAL = 1, BOOLEAN = 2, ADDITIVE = 3 };

// An array where it lies. Strides are in elements, may be 0 or negative, and are as many as the array has dims.
struct Tensor {
    const void* data;
    const int64_t* strides;
    Dtype dtype;
};

// query N..×H_q×L×D, key and value N..×H×S×D, result N..×H_q×L×D without gaps, in the query's dtype; H_q is a multiple of
// H, and query head h reads key head h // (H_q / H).
struct DenseAttention {
    Tensor query, key, value;
    Tensor mask;  // BOOLEAN: bytes, not 0 where a key is seen. ADDITIVE: of any dtype, -inf and its lowest number hide.
    void* result;
    const int64_t* leading;  // the sizes of N..
    int64_t leading_dims, query_heads, heads, queries, keys, features;
    float scale;
    MaskKind mask_kind;
};

// query B×H_q×L×D, key_pages and value_pages P×H×page_size×D, block_table B×max_pages and context_lens B without gaps.
// Token p of row b lies in page block_table[b, p / page_size], slot p % page_size; nothing past a row's context is read.
struct PagedAttention {
    Tensor query, key_pages, value_pages;
    const int64_t* block_table;
    const int64_t* context_lens;
    void* result;
    int64_t batch, query_heads, heads, queries, features, page_size, max_pages;
    float scale;
    MaskKind mask_kind;  // NONE or CAUSAL: the queries are the last tokens of the context
};

// The result does not depend on the number of threads. Throws std::bad_alloc.
void attend_dense(const DenseAttention& call, int threads);
void attend_paged(const PagedAttention& call, int threads);

}  // namespace inferspec
