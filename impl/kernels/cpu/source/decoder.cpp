#include "decoder.h"

#include <cstring>
#include <vector>

#include "attention.h"
#include "decoder_steps.h"
#include "linear.h"
#include "parallel.h"

namespace inferspec {
namespace {

struct Activations;
struct Attended;

template <typename T>
class Pass {
   public:
    Pass(const DecoderModel& model, const DecoderBatch& batch, int threads)
        : m(model),
          b(batch),
          threads(threads),
          dtype(static_cast<Dtype>(model.dtype)),
          count(batch.firsts[batch.sequences]),
          queries(model.heads * model.head_dim),
          keys(model.kv_heads * model.head_dim),
          position(count),
          slot(count) {
        const size_t features = 3 * m.hidden + 2 * queries + 2 * keys + 2 * m.intermediate;
        T* memory = scratch<Activations, T>(features * count);
        const auto take = [&](size_t width) { return std::exchange(memory, memory + width * count); };
        x = take(m.hidden), normed = take(m.hidden), branch = take(m.hidden);
        query = take(queries), attended = take(queries), key = take(keys), value = take(keys);
        gate = take(m.intermediate), up = take(m.intermediate);
        for (int64_t s = 0; s < b.sequences; ++s) {
            for (int64_t t = b.firsts[s]; t < b.firsts[s + 1]; ++t) {
                const int64_t p = b.starts[s] + t - b.firsts[s], page = b.tables[s * b.width + p / b.page_size];
                position[t] = p;
                slot[t] = page * m.kv_heads * b.page_size + p % b.page_size;
            }
        }
    }

    void run(const DecoderPages* pages, void* logits) {
        const Turns turns(m.frequencies, m.head_dim, position);
        linear_rows(b.tokens, count, m.embedding, x, dtype, threads);
        for (int64_t l = 0; l < m.num_layers; ++l) {
            attention(m.layers[l], turns, pages[l]);
            mlp(m.layers[l]);
        }
        if (b.num_rows) head(logits);
    }

   private:
    void attention(const DecoderLayer& layer, const Turns& turns, const DecoderPages& pages) {
        norm(x, layer.input_norm, normed, count);
        products(normed, {&layer.query, &layer.key, &layer.value}, {query, key, value});
        for_tokens([&](size_t t) {
            place(query + t * queries, m.heads, layer.query_norm, turns, t);
            place(key + t * keys, m.kv_heads, layer.key_norm, turns, t);
            keep(key + t * keys, pages.keys, t);
            keep(value + t * keys, pages.values, t);
        });
        attend(pages);
        products(attended, {&layer.output}, {branch});
        for_tokens([&](size_t t) { add(x + t * m.hidden, branch + t * m.hidden, m.hidden); });
    }

    void mlp(const DecoderLayer& layer) {
        norm(x, layer.post_attention_norm, normed, count);
        products(normed, {&layer.gate, &layer.up}, {gate, up});
        for_tokens([&](size_t t) { silu_times(gate + t * m.intermediate, up + t * m.intermediate, m.intermediate); });
        products(gate, {&layer.down}, {branch});
        for_tokens([&](size_t t) { add(x + t * m.hidden, branch + t * m.hidden, m.hidden); });
    }

    // The wanted rows alone; where they all are in their order, as they lie.
    void head(void* logits) {
        for (int64_t r = 0; r < b.num_rows; ++r) {
            norm(x + b.rows[r] * m.hidden, m.norm, normed + r * m.hidden, 1);
        }
        linear_products(normed, dtype, b.num_rows, {&m.head}, {logits}, threads);
    }

    void norm(const T* from, const void* weight, T* to, size_t rows) {
        parallel_for(rows < FEW ? 1 : threads, rows, [&](size_t r) {
            rms_norm(from + r * m.hidden, static_cast<const T*>(weight), m.hidden, m.eps, to + r * m.hidden);
        });
    }

    template <size_t number>
    void products(const T* from, const Linear* const (&layers)[number], void* const (&to)[number]) {
        linear_products(from, dtype, count, layers, to, threads);
    }

    // Heads of one token as attention reads them.
    void place(T* heads, int64_t number, const void* weight, const Turns& turns, size_t t) {
        for (int64_t h = 0; h < number; ++h) {
            T* one = heads + h * m.head_dim;
            if (weight) rms_norm(one, static_cast<const T*>(weight), m.head_dim, m.eps, one);
            turns.turn(one, t);
        }
    }

    // Puts the heads of token t where its page has room for them.
    void keep(const T* heads, void* pages, size_t t) {
        for (int64_t h = 0; h < m.kv_heads; ++h) {
            T* to = static_cast<T*>(pages) + (slot[t] + h * b.page_size) * m.head_dim;
            std::memcpy(to, heads + h * m.head_dim, m.head_dim * sizeof(T));
        }
    }

    // Neighbouring sequences with equally many new tokens go together.
    void attend(const DecoderPages& pages) {
        for (int64_t first = 0, last; first < b.sequences; first = last) {
            const int64_t length = b.firsts[first + 1] - b.firsts[first];
            for (last = first + 1; last < b.sequences && b.firsts[last + 1] - b.firsts[last] == length; ++last) {
            }
            attend(pages, first, last - first, length);
        }
    }

    void attend(const DecoderPages& pages, int64_t first, int64_t sequences, int64_t length) {
        if (!length) return;
        std::vector<int64_t> contexts(sequences);
        for (int64_t s = 0; s < sequences; ++s) contexts[s] = b.starts[first + s] + length;
        const int64_t dim = m.head_dim, page = b.page_size * dim;
        const int64_t query_strides[] = {length * m.heads * dim, dim, m.heads * dim, 1};
        const int64_t page_strides[] = {m.kv_heads * page, page, dim, 1};
        const size_t at = b.firsts[first] * queries;
        T* result = length == 1 ? attended + at : scratch<Attended, T>(sequences * length * queries);
        attend_paged({{query + at, query_strides, dtype},
                      {pages.keys, page_strides, dtype},
                      {pages.values, page_strides, dtype},
                      b.tables + first * b.width,
                      contexts.data(),
                      result,
                      sequences,
                      m.heads,
                      m.kv_heads,
                      length,
                      dim,
                      b.page_size,
                      b.width,
                      m.scale,
                      MaskKind::CAUSAL},
                     threads);
        if (length > 1) by_token(result, sequences, length, attended + at);
    }

    // B×H_q×L×D -> B×L×H_q×D.
    void by_token(const T* from, int64_t sequences, int64_t length, T* to) {
        const int64_t dim = m.head_dim;
        for (int64_t s = 0; s < sequences; ++s) {
            for (int64_t h = 0; h < m.heads; ++h) {
                for (int64_t t = 0; t < length; ++t) {
                    std::memcpy(to + ((s * length + t) * m.heads + h) * dim,
                                from + ((s * m.heads + h) * length + t) * dim, dim * sizeof(T));
                }
            }
        }
    }

    template <typename Body>
    void for_tokens(const Body& body) {
        parallel_for(count < FEW ? 1 : threads, count, body);
    }

    // Below so many rows waking another thread costs more than it brings.
    static constexpr size_t FEW = 8;

    const DecoderModel& m;
    const DecoderBatch& b;
    const int threads;
    const Dtype dtype;
    const size_t count;
    const int64_t queries, keys;
    std::vector<int64_t> position, slot;
    T *x, *normed, *branch, *query, *attended, *key, *value, *gate, *up;
};

}  // namespace

void decode(const DecoderModel& model, const DecoderBatch& batch, const DecoderPages* pages, void* logits, int threads) {
    with_type(static_cast<Dtype>(model.dtype), [&](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        Pass<T>(model, batch, threads).run(pages, logits);
    });
}

}  // namespace inferspec
