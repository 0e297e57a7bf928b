// A decoder of Llama's kind, whole: tokens in, logits out, keys and values in pages.
//
// Activations are rounded to the model's dtype where the operations of `impl` round them: rows of the embedding, both
// steps of a norm, products, heads as RoPE leaves them, attention, SiLU, the gated product, the residual stream. What
// lies between is in float32.
//
// Sources: Touvron et al. 2023 (Llama), section 2.2; Yang et al. 2025 (Qwen3), section 2; Kwon et al. 2023 (pages).
#pragma once

#include <cstddef>
#include <cstdint>

#include "linear.h"

namespace inferspec {

// Of one layer. Norm weights are in the model's dtype; query_norm and key_norm are null where there are none.
struct DecoderLayer {
    Linear query, key, value, output, gate, up, down;
    const void* input_norm;
    const void* post_attention_norm;
    const void* query_norm;
    const void* key_norm;
};

// E hidden, H_q heads, H kv_heads, D head_dim. The embedding's rows are in `dtype`.
struct DecoderModel {
    const DecoderLayer* layers;
    Linear embedding, head;
    const void* norm;
    const float* frequencies;  // of RoPE, radians per position: D / 2
    int64_t num_layers, hidden, intermediate, heads, kv_heads, head_dim;
    float eps;
    float scale;  // of the products of queries and keys
    int32_t dtype;
};

// The keys and values of one layer, P×H×page_size×D each, in the model's dtype.
struct DecoderPages {
    void* keys;
    void* values;
};

// New tokens of some sequences, one sequence after the other: sequence i has tokens[firsts[i]] … tokens[firsts[i + 1] - 1],
// at the positions from starts[i] on. Its position p is in page tables[i·width + p / page_size], slot p % page_size.
// rows: which of the tokens to give the logits of.
struct DecoderBatch {
    const int64_t* tokens;
    const int64_t* firsts;
    const int64_t* starts;
    const int64_t* tables;
    const int64_t* rows;
    int64_t sequences, width, page_size, num_rows;
};

// Writes keys and values of the new tokens into the pages, one entry for each layer, and logits, num_rows×V in the
// model's dtype. Everything is checked by the caller. Throws std::bad_alloc.
void decode(const DecoderModel& model, const DecoderBatch& batch, const DecoderPages* pages, void* logits, int threads);

}  // namespace inferspec
