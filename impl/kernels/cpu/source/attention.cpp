// Shares attention out to threads: by key heads, by blocks of rows and, where there is one block only, by parts of the keys.
#include "attention.h"

#include <atomic>
#include <memory>
#include <new>

#include "attention_amx.h"
#include "attention_few.h"
#include "attention_head.h"
#include "attention_tiles.h"
#include "parallel.h"

namespace inferspec {
namespace {

// Keys of a part. Where parts begin depends on shapes alone, and so does how their sums are rounded.
constexpr int64_t PART_KEYS = 512;

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

const char* advanced(const Tensor& tensor, int64_t elements) {
    return static_cast<const char*>(tensor.data) + elements * static_cast<int64_t>(size_of(tensor.dtype));
}

// What has been summed up for the rows of a block, in one piece of memory. Panels fill up the last rows.
int64_t running_size(int64_t rows, int64_t features) {
    return divided_up(rows, PANEL_ROWS) * PANEL_ROWS * (padded_features(features) + 2);
}

Running running_in(float* memory, int64_t rows, int64_t features) {
    const int64_t whole = divided_up(rows, PANEL_ROWS) * PANEL_ROWS;
    return {memory, memory + whole, memory + 2 * whole, padded_features(features)};
}

// Over the keys [first_key, last_key), for rows that have seen none so far.
void attend_rows(const AttentionHead& head, int64_t first_row, int64_t rows, int64_t first_key, int64_t last_key,
                 float* memory) {
    const Running running = running_in(memory, rows, head.features);
    const auto clear = [&] {
        std::fill_n(memory, running_size(rows, head.features), 0.0f);
        std::fill_n(running.tops, running.totals - running.tops, -INFINITE);
    };
    clear();
    if (rows <= FEW_ROWS) {
        FewWalk(head, first_row, rows, running).walk(first_key, last_key);
        return;
    }
#if defined(INFERSPEC_AMX)
    if (AmxProducts::suit(head)) {
        if (TileWalk<AmxProducts>(head, first_row, rows, running).walk(first_key, last_key)) return;
        clear();
    }
#endif
    TileWalk<VectorProducts>(head, first_row, rows, running).walk(first_key, last_key);
}

// Adds up what was summed over each part of the keys, in the first part's memory, and writes the rows.
void merge(const AttentionHead& head, int64_t parts, float* memory) {
    const int64_t rows = head.rows(), size = running_size(rows, head.features);
    const Running all = running_in(memory, rows, head.features);
    for (int64_t row = 0; row < rows; ++row) {
        float top = -INFINITE;
        for (int64_t part = 0; part < parts; ++part) {
            top = std::max(top, running_in(memory + part * size, rows, head.features).tops[row]);
        }
        const Vector reference = fill(std::max(std::numeric_limits<float>::lowest(), top));
        float* sums = all.sums + row * all.stride;
        float total = 0.0f;
        for (int64_t part = 0; part < parts; ++part) {
            const Running one = running_in(memory + part * size, rows, head.features);
            const Vector factor = exp(fill(one.tops[row]) - reference);
            total += one.totals[row] * first_lane(factor);
            const float* more = one.sums + row * one.stride;
            for (int64_t i = 0; i < head.features; i += WIDTH) {
                const Vector scaled = load(more + i) * factor;
                store(sums + i, part == 0 ? scaled : load(sums + i) + scaled);
            }
        }
        head.write(row, sums, total);
    }
}

// Attention of every head that head_at(index) makes; all have the same rows, and `keys` is the most that one has.
template <typename HeadAt>
void attend_heads(int64_t heads, int64_t rows, int64_t keys, int64_t features, int threads, const HeadAt& head_at) {
    std::atomic<bool> exhausted{false};
    const auto shared = [&](int64_t count, const auto& body) {
        parallel_for(threads, static_cast<size_t>(count), [&](size_t index) {
            try {
                body(static_cast<int64_t>(index));
            } catch (const std::bad_alloc&) {
                exhausted = true;
            }
        });
        if (exhausted) throw std::bad_alloc();
    };

    const int64_t blocks = divided_up(rows, BLOCK_ROWS), parts = divided_up(keys, PART_KEYS);
    if (blocks > 1 || parts <= 1) {
        shared(heads * blocks, [&](int64_t index) {
            // The last block of a causal head is the longest: first.
            const int64_t first_row = (blocks - 1 - index % blocks) * BLOCK_ROWS;
            const int64_t count = std::min(BLOCK_ROWS, rows - first_row);
            const AttentionHead head = head_at(index / blocks);
            float* memory = scratch<struct OfBlock, float>(running_size(count, features));
            attend_rows(head, first_row, count, 0, head.key_count, memory);
            const Running running = running_in(memory, count, features);
            for (int64_t row = 0; row < count; ++row) {
                head.write(first_row + row, running.sums + row * running.stride, running.totals[row]);
            }
        });
        return;
    }
    const int64_t size = running_size(rows, features);
    const std::unique_ptr<float[]> memory(new float[heads * parts * size]);
    shared(heads * parts, [&](int64_t index) {
        const AttentionHead head = head_at(index / parts);
        const int64_t first_key = index % parts * PART_KEYS;
        attend_rows(head, 0, rows, first_key, std::min(first_key + PART_KEYS, head.key_count), &memory[index * size]);
    });
    shared(heads, [&](int64_t index) { merge(head_at(index), parts, &memory[index * parts * size]); });
}

HeadRows dense_rows(const Tensor& tensor, int64_t offset, const int64_t* strides, int64_t count) {
    static const int64_t only_page = 0;
    return {advanced(tensor, offset), tensor.dtype, 0, strides[1], strides[2], &only_page, std::max<int64_t>(count, 1)};
}

HeadRows paged_rows(const Tensor& pool, int64_t head, const int64_t* table, int64_t page_size) {
    return {advanced(pool, head * pool.strides[1]), pool.dtype, pool.strides[0], pool.strides[2], pool.strides[3],
            table, page_size};
}

}  // namespace

void attend_dense(const DenseAttention& call, int threads) {
    const int64_t dims = call.leading_dims, ratio = call.query_heads / call.heads;
    int64_t batch = 1;
    for (int64_t dim = 0; dim < dims; ++dim) batch *= call.leading[dim];
    const auto offset = [&](const Tensor& tensor, int64_t entry, int64_t head) {
        int64_t sum = head * tensor.strides[dims];
        for (int64_t dim = dims - 1; dim >= 0; --dim) {
            sum += entry % call.leading[dim] * tensor.strides[dim];
            entry /= call.leading[dim];
        }
        return sum;
    };
    const bool masked = call.mask_kind == MaskKind::BOOLEAN || call.mask_kind == MaskKind::ADDITIVE;
    attend_heads(batch * call.heads, ratio * call.queries, call.keys, call.features, threads, [&](int64_t index) {
        const int64_t entry = index / call.heads, key_head = index % call.heads, query_head = key_head * ratio;
        AttentionHead head{};
        head.query = advanced(call.query, offset(call.query, entry, query_head));
        head.query_dtype = call.query.dtype;
        head.query_head_stride = call.query.strides[dims];
        head.query_position_stride = call.query.strides[dims + 1];
        head.query_feature_stride = call.query.strides[dims + 2];
        const int64_t row_elements = call.queries * call.features;
        head.result = static_cast<char*>(call.result) +
                      (entry * call.query_heads + query_head) * row_elements * size_of(call.query.dtype);
        head.ratio = ratio;
        head.positions = call.queries;
        head.features = call.features;
        head.keys = dense_rows(call.key, offset(call.key, entry, key_head), call.key.strides + dims, call.keys);
        head.values = dense_rows(call.value, offset(call.value, entry, key_head), call.value.strides + dims, call.keys);
        head.key_count = call.keys;
        head.scale = call.scale;
        head.mask_kind = call.mask_kind;
        if (masked) {
            const int64_t bytes = call.mask_kind == MaskKind::BOOLEAN ? 1 : size_of(call.mask.dtype);
            head.mask = static_cast<const char*>(call.mask.data) + offset(call.mask, entry, query_head) * bytes;
            head.mask_dtype = call.mask.dtype;
            head.mask_head_stride = call.mask.strides[dims];
            head.mask_position_stride = call.mask.strides[dims + 1];
            head.mask_key_stride = call.mask.strides[dims + 2];
        }
        return head;
    });
}

void attend_paged(const PagedAttention& call, int threads) {
    const int64_t ratio = call.query_heads / call.heads;
    int64_t longest = 0;
    for (int64_t row = 0; row < call.batch; ++row) longest = std::max(longest, call.context_lens[row]);
    attend_heads(call.batch * call.heads, ratio * call.queries, longest, call.features, threads, [&](int64_t index) {
        const int64_t entry = index / call.heads, key_head = index % call.heads, query_head = key_head * ratio;
        const int64_t* table = call.block_table + entry * call.max_pages;
        AttentionHead head{};
        head.query = advanced(call.query, entry * call.query.strides[0] + query_head * call.query.strides[1]);
        head.query_dtype = call.query.dtype;
        head.query_head_stride = call.query.strides[1];
        head.query_position_stride = call.query.strides[2];
        head.query_feature_stride = call.query.strides[3];
        head.result = static_cast<char*>(call.result) + (entry * call.query_heads + query_head) * call.queries *
                                                            call.features * size_of(call.query.dtype);
        head.ratio = ratio;
        head.positions = call.queries;
        head.features = call.features;
        head.keys = paged_rows(call.key_pages, key_head, table, call.page_size);
        head.values = paged_rows(call.value_pages, key_head, table, call.page_size);
        head.key_count = call.context_lens[entry];
        head.scale = call.scale;
        head.mask_kind = call.mask_kind;
        return head;
    });
}

}  // namespace inferspec
