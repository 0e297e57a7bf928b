// Runs calls of the kernels that a file describes, and writes what they give: for paths that this processor does not have
// and for builds that Python cannot load. Every array gets memory that ends where it ends, at no better alignment than
// its elements need.
//
// A call: its kind, the numbers of int64 arguments and of arrays, the arguments, and for each array its size in bytes, that
// of an element, and its bytes. The last argument is the size of the result in bytes, which are POISON before the call.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dense.h"
#include "quantized.h"

namespace {

using namespace inferspec;

constexpr int POISON = 0xa5;

class Array {
   public:
    Array(size_t bytes, size_t element) : memory_(static_cast<char*>(std::malloc(bytes + element))), shift_(element) {}
    Array(Array&& other) : memory_(other.memory_), shift_(other.shift_) { other.memory_ = nullptr; }
    ~Array() { std::free(memory_); }
    char* data() const { return memory_ + shift_; }

   private:
    char* memory_;
    size_t shift_;
};

struct Call {
    std::vector<int64_t> arguments;
    std::vector<Array> arrays;
    size_t next = 0;

    size_t number() { return static_cast<size_t>(arguments[next++]); }
    Dtype dtype() { return static_cast<Dtype>(arguments[next++]); }
    QuantizedMatrix quantized(size_t first) {
        QuantizedMatrix w{};
        w.packed = reinterpret_cast<const uint32_t*>(arrays[first].data());
        w.scales = arrays[first + 1].data();
        w.biases = arrays[first + 2].data();
        w.scales_dtype = dtype(), w.biases_dtype = dtype();
        w.outputs = number(), w.inputs = number(), w.group_size = number(), w.bits = number();
        return w;
    }
};

void product(Call& call, void* y) {
    const Dtype x_dtype = call.dtype();
    const size_t rows = call.number(), x_stride = call.number();
    const QuantizedMatrix w = call.quantized(1);
    const auto form = call.number() ? quantized_product : quantized_product_plain;
    const Dtype y_dtype = call.dtype();
    const size_t y_stride = call.number();
    form(call.arrays[0].data(), x_dtype, rows, x_stride, w, y, y_dtype, y_stride, static_cast<int>(call.number()));
}

void rows(Call& call, void* y) {
    const size_t count = call.number();
    const QuantizedMatrix w = call.quantized(1);
    const Dtype y_dtype = call.dtype();
    const auto* tokens = reinterpret_cast<const int64_t*>(call.arrays[0].data());
    quantized_rows(tokens, count, w, y, y_dtype, static_cast<int>(call.number()));
}

void dense(Call& call, void* y) {
    const Dtype x_dtype = call.dtype();
    const size_t rows = call.number(), x_stride = call.number();
    DenseMatrix w{call.arrays[1].data(), call.dtype(), 0, 0, 0};
    w.outputs = call.number(), w.inputs = call.number(), w.stride = call.number();
    const Dtype bias_dtype = call.dtype(), y_dtype = call.dtype();
    const size_t y_stride = call.number();
    dense_product(call.arrays[0].data(), x_dtype, rows, x_stride, w, call.arrays[2].data(), bias_dtype, y, y_dtype,
                  y_stride, static_cast<int>(call.number()));
}

void (*const KINDS[])(Call&, void*) = {product, rows, dense};

bool read(std::FILE* file, void* to, size_t bytes) { return std::fread(to, 1, bytes, file) == bytes; }

}  // namespace

int main(int, char** names) {
    std::FILE *in = std::fopen(names[1], "rb"), *out = std::fopen(names[2], "wb");
    int64_t head[3];
    while (read(in, head, sizeof head)) {
        Call call;
        call.arguments.resize(head[1]);
        if (!read(in, call.arguments.data(), head[1] * sizeof(int64_t))) return 2;
        for (int64_t i = 0; i < head[2]; ++i) {
            int64_t sizes[2];
            if (!read(in, sizes, sizeof sizes)) return 2;
            call.arrays.emplace_back(sizes[0], sizes[1]);
            if (!read(in, call.arrays.back().data(), sizes[0])) return 2;
        }
        const size_t bytes = call.arguments.back();
        Array y(bytes, 4);
        std::memset(y.data(), POISON, bytes);
        KINDS[head[0]](call, y.data());
        std::fwrite(y.data(), 1, bytes, out);
    }
    std::fclose(out);
    return 0;
}
