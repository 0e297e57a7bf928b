// Runs the attention kernels out of Python: in a sanitizer's build, and for another kind of processor in its emulator.
// From standard input to standard output, as test_attention.py writes and reads them: numbers are int64 or double, arrays
// bytes. Every array lies in memory of its exact size, so that a sanitizer sees each access beside it.
#include "attention.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "vector.h"

namespace {

using namespace inferspec;

enum class Kind : int64_t { DENSE = 0, PAGED = 1, EXPONENTIAL = 2 };

void fail(const char* message) {
    std::fprintf(stderr, "%s\n", message);
    std::exit(2);
}

template <typename T>
T next() {
    T value;
    if (std::fread(&value, sizeof value, 1, stdin) != 1) fail("the input ends too early");
    return value;
}

std::vector<int64_t> integers(int64_t count) {
    std::vector<int64_t> values(count);
    for (auto& value : values) value = next<int64_t>();
    return values;
}

struct Bytes {
    explicit Bytes(size_t size) : size(size), data(new char[size]) {}
    size_t size;
    std::unique_ptr<char[]> data;
};

Bytes bytes() {
    Bytes read(next<int64_t>());
    if (read.size && std::fread(read.data.get(), read.size, 1, stdin) != 1) fail("the input ends too early");
    return read;
}

// An array of any strides in memory of its own, and a copy to see that it is left alone.
struct Array {
    explicit Array(int64_t dims)
        : dtype(static_cast<Dtype>(next<int64_t>())), first(next<int64_t>()), strides(integers(dims)), memory(bytes()) {
        before.assign(memory.data.get(), memory.data.get() + memory.size);
    }

    Tensor tensor() const { return {memory.data.get() + first, strides.data(), dtype}; }

    void check() const {
        if (std::memcmp(before.data(), memory.data.get(), memory.size) != 0) fail("an argument was changed");
    }

    Dtype dtype;
    int64_t first;  // byte of the first element
    std::vector<int64_t> strides;
    Bytes memory;
    std::vector<char> before;
};

// Holds NaN until it is written.
Bytes unwritten(int64_t elements, Dtype dtype) {
    Bytes result(elements * size_of(dtype));
    std::memset(result.data.get(), 0xff, result.size);
    return result;
}

void answer(const Bytes& result) { std::fwrite(result.data.get(), 1, result.size, stdout); }

void run_dense() {
    const int threads = next<int64_t>();
    const float scale = next<double>();
    const auto mask_kind = static_cast<MaskKind>(next<int64_t>());
    const int64_t dims = next<int64_t>();
    const auto leading = integers(dims), sizes = integers(5);
    const Array query(dims + 3), key(dims + 3), value(dims + 3), mask(dims + 3);
    int64_t elements = sizes[0] * sizes[2] * sizes[4];
    for (int64_t size : leading) elements *= size;
    const Bytes result = unwritten(elements, query.dtype);
    attend_dense({query.tensor(), key.tensor(), value.tensor(), mask.tensor(), result.data.get(), leading.data(), dims,
                  sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], scale, mask_kind},
                 threads);
    for (const Array* array : {&query, &key, &value, &mask}) array->check();
    answer(result);
}

void run_paged() {
    const int threads = next<int64_t>();
    const float scale = next<double>();
    const auto mask_kind = static_cast<MaskKind>(next<int64_t>());
    const auto sizes = integers(7);
    const Array query(4), key(4), value(4);
    const auto table = integers(sizes[0] * sizes[6]), lens = integers(sizes[0]);
    const Bytes result = unwritten(sizes[0] * sizes[1] * sizes[3] * sizes[4], query.dtype);
    attend_paged({query.tensor(), key.tensor(), value.tensor(), table.data(), lens.data(), result.data.get(), sizes[0],
                  sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], scale, mask_kind},
                 threads);
    for (const Array* array : {&query, &key, &value}) array->check();
    answer(result);
}

void run_exponential() {
    const Bytes x = bytes(), result(x.size);
    const float* from = reinterpret_cast<const float*>(x.data.get());
    float* to = reinterpret_cast<float*>(result.data.get());
    const size_t count = x.size / sizeof(float);
    for (size_t i = 0; i < count; i += Vector::width) {
        const size_t some = std::min(Vector::width, count - i);
        store(to + i, exp(load(from + i, some)), some);
    }
    answer(result);
}

}  // namespace

int main() {
    for (int64_t calls = next<int64_t>(); calls > 0; --calls) {
        switch (static_cast<Kind>(next<int64_t>())) {
            case Kind::DENSE:
                run_dense();
                break;
            case Kind::PAGED:
                run_paged();
                break;
            case Kind::EXPONENTIAL:
                run_exponential();
                break;
        }
    }
    return 0;
}
