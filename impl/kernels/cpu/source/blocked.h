// Products of many rows, blocked for the caches: rows of x in panels along the lanes, weights restored block by block.
#pragma once

#include <algorithm>
#include <cstddef>

#include "arrays.h"
#include "codes.h"
#include "dtypes.h"
#include "parallel.h"
#include "tile.h"

namespace inferspec {

// How many terms of the sums are added at a time: a block of weights and a panel of x so deep stay in the caches.
constexpr size_t DEPTH = 256;
static_assert(DEPTH % CHUNK == 0);

// An order of indices that leaves them as they are.
inline size_t as_it_is(size_t index) { return index; }

// The order of Codes' vectors: which index of a row is at which place of the restored one.
template <int bits>
size_t as_unpacked(size_t index) {
    const size_t in_chunk = index % CHUNK;
    return index - in_chunk + Codes<bits>::place(in_chunk / Vector::width, in_chunk % Vector::width);
}

struct PackedRows;
struct PackedLine;
struct BlockOfWeights;
struct BlockOfSums;

// x as [panels][depth][PANEL]: panel p holds rows p·PANEL …, at each k their element order(k); rows past the last are 0.
template <typename Order>
const float* pack_rows(const void* x, Dtype dtype, size_t rows, size_t stride, size_t depth, Order order, int threads) {
    const size_t panels = (rows + PANEL - 1) / PANEL;
    float* packed = scratch<PackedRows, float>(panels * depth * PANEL);
    parallel_for(threads, panels, [&](size_t number) {
        float* panel = packed + number * depth * PANEL;
        float* line = scratch<PackedLine, float>(depth);
        for (size_t lane = 0; lane < PANEL; ++lane) {
            const size_t row = number * PANEL + lane;
            if (row < rows) {
                widen(x, dtype, row * stride, depth, line);
                for (size_t k = 0; k < depth; ++k) panel[k * PANEL + lane] = line[order(k)];
            } else {
                for (size_t k = 0; k < depth; ++k) panel[k * PANEL + lane] = 0;
            }
        }
    });
    return packed;
}

struct BlockedShape {
    size_t rows, depth, outputs;
    size_t block;           // outputs that are restored together
    size_t across, along;   // weight(t, k) of a block is at t · across + k · along
};

// y[row][first + order(t)] = Σ_k x[row][k] · weight(first + t, k), plus the element of `added` of that column, if any.
// restore(first, count, k, depth, weights) writes weights of `count` outputs from `first` and of terms k … k + depth - 1.
template <typename Restore, typename Order>
void blocked_product(const float* packed, const BlockedShape& shape, const Restore& restore, Order order,
                     const float* added, void* y, Dtype y_dtype, size_t y_stride, int threads) {
    const size_t panels = (shape.rows + PANEL - 1) / PANEL, block = shape.block;
    parallel_for(threads, (shape.outputs + block - 1) / block, [&](size_t number) {
        const size_t first = number * block, count = std::min(block, shape.outputs - first);
        float* weights = scratch<BlockOfWeights, float>(block * DEPTH);
        float* sums = scratch<BlockOfSums, float>((panels * PANEL + 1) * block);
        float* line = sums + panels * PANEL * block;
        std::fill(sums, line, 0.0f);
        for (size_t k = 0; k < shape.depth; k += DEPTH) {
            const size_t depth = std::min(DEPTH, shape.depth - k);
            restore(first, count, k, depth, weights);
            for (size_t panel = 0; panel < panels; ++panel) {
                add_products(count, weights, shape.across, shape.along, packed + (panel * shape.depth + k) * PANEL,
                             depth, sums + panel * block * PANEL);
            }
        }
        for (size_t row = 0; row < shape.rows; ++row) {
            const float* of_row = sums + row / PANEL * block * PANEL + row % PANEL;
            for (size_t t = 0; t < count; ++t) line[order(t)] = of_row[t * PANEL];
            for (size_t t = 0; added && t < count; ++t) line[t] += added[first + t];
            narrow(line, count, y, y_dtype, row * y_stride + first);
        }
    });
}

}  // namespace inferspec
