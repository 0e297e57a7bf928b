// Codes of 4 and 8 bits as vectors of floats, and parts of quantised matrices in float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "arrays.h"
#include "dtypes.h"
#include "quantized.h"
#include "vector.h"

namespace inferspec {

// Codes are unpacked by chunks of CHUNK neighbours, which never cross groups. Their vectors hold them in the order that
// the instruction set gives most cheaply: lane l of vector v is the code at place(v, l) of the chunk.
constexpr size_t CHUNK = 32;
constexpr size_t VECTORS = CHUNK / Vector::width;

template <int bits>
constexpr size_t words_of_chunk() {
    return CHUNK * bits / 32;
}

template <int bits>
struct Codes {
    Vector vectors[VECTORS];

    static size_t place(size_t vector, size_t lane);
    static Codes unpack(const uint32_t* words);
};

#if defined(INFERSPEC_AVX512)

template <>
inline size_t Codes<4>::place(size_t vector, size_t lane) {
    return 2 * lane + vector;
}

template <>
inline Codes<4> Codes<4>::unpack(const uint32_t* words) {
    // The four lowest bits of a lane choose an entry: no masks, no conversions.
    const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
    return {{{_mm512_permutexvar_ps(bytes, numbers)}, {_mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), numbers)}}};
}

template <>
inline size_t Codes<8>::place(size_t vector, size_t lane) {
    return 16 * vector + lane;
}

template <>
inline Codes<8> Codes<8>::unpack(const uint32_t* words) {
    Codes<8> codes;
    for (size_t v = 0; v < VECTORS; ++v) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words + 4 * v));
        codes.vectors[v] = {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))};
    }
    return codes;
}

#elif defined(INFERSPEC_AVX2)

template <>
inline size_t Codes<4>::place(size_t vector, size_t lane) {
    return 16 * (vector / 2) + 2 * lane + vector % 2;
}

template <>
inline Codes<4> Codes<4>::unpack(const uint32_t* words) {
    Codes<4> codes;
    for (size_t half = 0; half < 2; ++half) {
        const __m128i packed = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(words + 2 * half));
        const __m256i bytes = _mm256_cvtepu8_epi32(packed);
        codes.vectors[2 * half] = {_mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)))};
        codes.vectors[2 * half + 1] = {_mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4))};
    }
    return codes;
}

template <>
inline size_t Codes<8>::place(size_t vector, size_t lane) {
    return 8 * vector + lane;
}

template <>
inline Codes<8> Codes<8>::unpack(const uint32_t* words) {
    Codes<8> codes;
    for (size_t v = 0; v < VECTORS; ++v) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(words + 2 * v));
        codes.vectors[v] = {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))};
    }
    return codes;
}

#else

// Four words to a vector: its codes are the lanes, shifted.
template <int bits>
size_t Codes<bits>::place(size_t vector, size_t lane) {
    constexpr size_t each = 32 / bits;
    return (vector / each * 4 + lane) * each + vector % each;
}

#if defined(INFERSPEC_NEON)

template <int bits>
Codes<bits> Codes<bits>::unpack(const uint32_t* words) {
    constexpr size_t each = 32 / bits;
    Codes<bits> codes;
    for (size_t v = 0; v < VECTORS; ++v) {
        const int32x4_t shift = vdupq_n_s32(-static_cast<int>(v % each * bits));
        const uint32x4_t moved = vshlq_u32(vld1q_u32(words + v / each * 4), shift);
        codes.vectors[v] = {vcvtq_f32_u32(vandq_u32(moved, vdupq_n_u32((1u << bits) - 1)))};
    }
    return codes;
}

#else

template <int bits>
Codes<bits> Codes<bits>::unpack(const uint32_t* words) {
    typedef int32_t Words __attribute__((vector_size(16)));
    constexpr size_t each = 32 / bits;
    Codes<bits> codes;
    for (size_t v = 0; v < VECTORS; ++v) {
        Words four;
        std::memcpy(&four, words + v / each * 4, sizeof four);
        const Words code = (four >> static_cast<int>(v % each * bits)) & ((1 << bits) - 1);
        codes.vectors[v] = {__builtin_convertvector(code, Vector::Native)};
    }
    return codes;
}

#endif
#endif

// Calls use(std::integral_constant<int, bits>): a template over numbers of bits out of one known at run time.
template <typename Use>
void with_bits(size_t bits, Use&& use) {
    if (bits == 4) {
        use(std::integral_constant<int, 4>());
    } else {
        use(std::integral_constant<int, 8>());
    }
}

// The scales (or biases) of some rows in float32, row by row: [rows][groups].
inline void widen_scales(const QuantizedMatrix& w, size_t row, size_t rows, float* scales) {
    widen(w.scales, w.scales_dtype, row * w.groups(), rows * w.groups(), scales);
}

inline void widen_biases(const QuantizedMatrix& w, size_t row, size_t rows, float* biases) {
    widen(w.biases, w.biases_dtype, row * w.groups(), rows * w.groups(), biases);
}

// The weights [first, first + count) of a row in the order of Codes' vectors; both are multiples of CHUNK.
template <int bits>
void restore(const uint32_t* row_words, const float* row_scales, const float* row_biases, size_t group_size,
             size_t first, size_t count, float* weights) {
    for (size_t i = first; i < first + count; i += CHUNK) {
        const auto codes = Codes<bits>::unpack(row_words + i * bits / 32);
        const Vector scale = fill(row_scales[i / group_size]), bias = fill(row_biases[i / group_size]);
        for (size_t v = 0; v < VECTORS; ++v) {
            store(weights + (i - first) + v * Vector::width, fma(codes.vectors[v], scale, bias));
        }
    }
}

}  // namespace inferspec
