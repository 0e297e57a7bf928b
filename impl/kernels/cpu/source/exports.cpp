// What Python calls, through ctypes: `inferspec_` and the name of a kernel. Every function returns 0, or 1 when there was
// no memory. A Dtype is passed as its number.

#include <cstddef>
#include <cstdint>
#include <new>

#include "attention.h"
#include "decoder.h"
#include "dense.h"
#include "dtypes.h"
#include "quantized.h"

namespace {

// To be counted up with every change of a signature or structure here: library.py has the same number.
constexpr int ABI = 2;

template <typename Kernel>
int guarded(const Kernel& kernel) {
    try {
        kernel();
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}

}  // namespace

extern "C" {

int inferspec_abi() { return ABI; }

int inferspec_attend_dense(const inferspec::DenseAttention* call, int threads) {
    return guarded([&] { attend_dense(*call, threads); });
}

int inferspec_attend_paged(const inferspec::PagedAttention* call, int threads) {
    return guarded([&] { attend_paged(*call, threads); });
}

int inferspec_quantized_product(const void* x, int x_dtype, size_t rows, size_t x_stride,
                                const inferspec::QuantizedMatrix* weights, int transpose, void* y, int y_dtype,
                                size_t y_stride, int threads) {
    return guarded([&] {
        const auto product = transpose ? inferspec::quantized_product : inferspec::quantized_product_plain;
        product(x, inferspec::Dtype(x_dtype), rows, x_stride, *weights, y, inferspec::Dtype(y_dtype), y_stride, threads);
    });
}

int inferspec_quantized_rows(const int64_t* tokens, size_t count, const inferspec::QuantizedMatrix* weights, void* y,
                             int y_dtype, int threads) {
    return guarded(
        [&] { inferspec::quantized_rows(tokens, count, *weights, y, inferspec::Dtype(y_dtype), threads); });
}

int inferspec_decode(const inferspec::DecoderModel* model, const inferspec::DecoderBatch* batch,
                     const inferspec::DecoderPages* pages, void* logits, int threads) {
    return guarded([&] { inferspec::decode(*model, *batch, pages, logits, threads); });
}

int inferspec_dense_product(const void* x, int x_dtype, size_t rows, size_t x_stride,
                            const inferspec::DenseMatrix* weights, const void* bias, int bias_dtype, void* y,
                            int y_dtype, size_t y_stride, int threads) {
    return guarded([&] {
        inferspec::dense_product(x, inferspec::Dtype(x_dtype), rows, x_stride, *weights, bias,
                                 inferspec::Dtype(bias_dtype), y, inferspec::Dtype(y_dtype), y_stride, threads);
    });
}

}
