#include "fixed_point.h"

#include <algorithm>
#include <type_traits>

#include "codes.h"
#include "parallel.h"
#include "quantized_forms.h"
#include "vector.h"

namespace inferspec {

#if defined(INFERSPEC_AVX512) && defined(__AVX512VNNI__)

namespace {

struct Digits;
struct Units;
struct GroupSums;

constexpr size_t DIGITS = 3;
// Bits of a number without its sign: digits are balanced, so that the highest one must leave room for a carry.
constexpr int PRECISION = 8 * DIGITS - 2;
constexpr size_t BYTES = 64;  // of a vector
constexpr size_t ROWS = 4;    // of weights that are read together

// Numbers of x that a vector of codes meets: those in its 64 bytes.
template <int bits>
constexpr size_t block_of() {
    return BYTES * 8 / bits;
}

// The largest of each eight neighbouring lanes, in all eight.
__m512 largest_of_eight(__m512 v) {
    v = _mm512_max_ps(v, _mm512_permute_ps(v, 0xb1));
    v = _mm512_max_ps(v, _mm512_permute_ps(v, 0x4e));
    return _mm512_max_ps(v, _mm512_shuffle_f32x4(v, v, 0xb1));
}

// Sixteen numbers as three vectors of digits, the highest first, and what they are multiples of. False where they cannot.
bool digits_of(__m512 x, __m128i digits[DIGITS], __m512& unit) {
    const __m512 largest = largest_of_eight(_mm512_abs_ps(x));
    const __mmask16 some = _mm512_cmp_ps_mask(largest, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    const __mmask16 fitting = _mm512_cmp_ps_mask(largest, _mm512_set1_ps(0x1p-90f), _CMP_GE_OQ) &
                              _mm512_cmp_ps_mask(largest, _mm512_set1_ps(0x1p127f), _CMP_LT_OQ);
    // max_ps may drop a NaN: each lane is looked at.
    const __mmask16 number = _mm512_cmp_ps_mask(x, x, _CMP_ORD_Q);
    if ((some & ~fitting) || number != 0xffff) return false;
    const __m512 exponent = _mm512_maskz_getexp_ps(some, largest);
    const __m512 one = _mm512_set1_ps(1.0f), shift = _mm512_set1_ps(PRECISION - 1);
    unit = _mm512_maskz_scalef_ps(some, one, _mm512_sub_ps(exponent, shift));
    __m512i whole = _mm512_cvtps_epi32(_mm512_scalef_ps(x, _mm512_sub_ps(shift, exponent)));
    for (size_t d = DIGITS; d-- > 0;) {
        digits[d] = _mm512_cvtepi32_epi8(whole);
        whole = _mm512_srai_epi32(_mm512_sub_epi32(whole, _mm512_cvtepi8_epi32(digits[d])), 8);
    }
    return true;
}

// The digits of a block of numbers, [digit][vector of codes][byte], and the units of its lanes.
template <int bits>
bool arrange(const float* x, size_t count, int8_t* digits, float* units) {
    constexpr size_t block = block_of<bits>();
    alignas(64) int8_t natural[DIGITS][block] = {};
    alignas(64) float unit_of[block] = {};
    for (size_t i = 0; i < count; i += 16) {
        __m128i sixteen[DIGITS];
        __m512 unit;
        if (!digits_of(_mm512_loadu_ps(x + i), sixteen, unit)) return false;
        for (size_t d = 0; d < DIGITS; ++d) _mm_store_si128(reinterpret_cast<__m128i*>(natural[d] + i), sixteen[d]);
        _mm512_store_ps(unit_of + i, unit);
    }
    for (size_t lane = 0; lane < 16; ++lane) units[lane] = unit_of[lane * block / 16];
    for (size_t d = 0; d < DIGITS; ++d, digits += block) {
        if (bits == 8) {
            std::memcpy(digits, natural[d], block);
            continue;
        }
        // Bytes of packed codes hold two: numbers of even places first, then those of odd ones.
        for (size_t half = 0; half < 2; ++half) {
            const __m512i both = _mm512_load_si512(natural[d] + half * BYTES % block);
            _mm256_store_si256(reinterpret_cast<__m256i*>(digits + half * 32), _mm512_cvtepi16_epi8(both));
            _mm256_store_si256(reinterpret_cast<__m256i*>(digits + BYTES % block + half * 32),
                               _mm512_cvtepi16_epi8(_mm512_srli_epi16(both, 8)));
        }
    }
    return true;
}

template <int bits>
bool prepare_row(const float* x, const QuantizedMatrix& w, FixedPointRow& row) {
    constexpr size_t block = block_of<bits>();
    const size_t blocks = (w.inputs + block - 1) / block;
    int8_t* digits = scratch<Digits, int8_t>(blocks * DIGITS * block);
    float* units = scratch<Units, float>(blocks * 16);
    float* sums = scratch<GroupSums, float>(w.groups());
    for (size_t b = 0; b < blocks; ++b) {
        const size_t count = std::min(block, w.inputs - b * block);
        if (!arrange<bits>(x + b * block, count, digits + b * DIGITS * block, units + b * 16)) return false;
    }
    for (size_t group = 0; group < w.groups(); ++group) {
        Vector total = fill(0.0f);
        for (size_t i = 0; i < w.group_size; i += Vector::width) total = total + load(x + group * w.group_size + i);
        sums[group] = sum(total);
    }
    row = {digits, units, sums, w.inputs};
    return true;
}

// Codes · numbers of each lane, as multiples of its unit.
template <int bits>
__m512 lanes_of(__m512i codes, const __m512i* digits) {
    const __m512i zero = _mm512_setzero_si512();
    if constexpr (bits == 4) {
        const __m512i low = _mm512_set1_epi32(0x0f0f0f0f);
        const __m512i even = _mm512_and_si512(codes, low), odd = _mm512_and_si512(_mm512_srli_epi32(codes, 4), low);
        __m512i sum = zero;
        for (size_t d = 0; d < DIGITS; ++d) {
            // 8 codes below 16 times 22 bits stay below 2^31.
            if (d) sum = _mm512_slli_epi32(sum, 8);
            sum = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum, even, digits[2 * d]), odd, digits[2 * d + 1]);
        }
        return _mm512_cvtepi32_ps(sum);
    } else {
        const __m512i high = _mm512_dpbusd_epi32(zero, codes, digits[0]);
        const __m512i middle = _mm512_slli_epi32(_mm512_dpbusd_epi32(zero, codes, digits[1]), 8);
        const __m512 rest = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(middle, codes, digits[2]));
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(65536.0f), rest);
    }
}

// The scales of the lanes of a block, whose first group is at p.
template <size_t groups, typename T>
__m512 scales_of(const T* p, size_t there, __m512i group_of_lane) {
    if constexpr (groups == 1) {
        return _mm512_set1_ps(to_float(*p));
    } else {
        return _mm512_permutexvar_ps(group_of_lane, load(p, std::min(groups, there)).value);
    }
}

// The sums of four vectors, or of one.
inline void add_up(const __m512 (&v)[4], float* sums) {
    __m256 half[4];
    for (int i = 0; i < 4; ++i) {
        half[i] = _mm256_add_ps(_mm512_castps512_ps256(v[i]), _mm512_extractf32x8_ps(v[i], 1));
    }
    const __m256 all = _mm256_hadd_ps(_mm256_hadd_ps(half[0], half[1]), _mm256_hadd_ps(half[2], half[3]));
    _mm_storeu_ps(sums, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}
inline void add_up(const __m512 (&v)[1], float* sums) { *sums = _mm512_reduce_add_ps(v[0]); }

// Some outputs from `first` on: codes of each lane times numbers, units and scales, and biases times sums of x.
template <int bits, size_t group_size, size_t rows, typename Scale, typename Bias>
void multiply(const FixedPointRow& x, const QuantizedMatrix& w, size_t first, float* y) {
    constexpr size_t block = block_of<bits>(), groups = std::max<size_t>(1, block / group_size), vectors = 8 / bits;
    const size_t words = w.words(), all = w.groups();
    const Scale* scales = static_cast<const Scale*>(w.scales) + first * all;
    const Bias* biases = static_cast<const Bias*>(w.biases) + first * all;
    const uint32_t* packed = w.packed + first * words;
    alignas(64) int32_t group_of_lane[16];
    for (int lane = 0; lane < 16; ++lane) group_of_lane[lane] = lane / static_cast<int>(16 / groups);
    const __m512i of_lane = _mm512_load_si512(group_of_lane);
    __m512 total[rows];
    std::fill(total, total + rows, _mm512_setzero_ps());
    for (size_t b = 0; b * block < x.inputs; ++b) {
        __m512i digits[DIGITS * vectors];
        for (size_t d = 0; d < DIGITS * vectors; ++d) {
            digits[d] = _mm512_load_si512(x.digits + (b * DIGITS * vectors + d) * BYTES);
        }
        const __m512 unit = _mm512_load_ps(x.units + b * 16);
        const size_t group = b * block / group_size;
        const __mmask16 there = lanes(std::min<size_t>(16, words - b * 16));
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; ++r) {
            const uint32_t* p = packed + r * words + b * 16;
            __builtin_prefetch(p + 2 * rows * words);
            const __m512 product = _mm512_mul_ps(lanes_of<bits>(_mm512_maskz_loadu_epi32(there, p), digits), unit);
            const __m512 scale = scales_of<groups>(scales + r * all + group, all - group, of_lane);
            total[r] = _mm512_fmadd_ps(product, scale, total[r]);
        }
    }
    for (size_t group = 0; group < all; group += 16) {
        const size_t some = std::min<size_t>(16, all - group);
        const __m512 of_group = load(x.sums + group, some).value;
        for (size_t r = 0; r < rows; ++r) {
            total[r] = _mm512_fmadd_ps(load(biases + r * all + group, some).value, of_group, total[r]);
        }
    }
    add_up(total, y + first);
}

template <int bits, size_t group_size>
void product(const FixedPointRow& x, const QuantizedMatrix& w, float* y, int threads) {
    const size_t parts = std::max<size_t>(1, std::min<size_t>(threads, w.outputs * w.inputs / WORTH_A_THREAD));
    with_type(w.scales_dtype, [&](auto* of_scales) {
        using Scale = std::remove_pointer_t<decltype(of_scales)>;
        with_type(w.biases_dtype, [&](auto* of_biases) {
            using Bias = std::remove_pointer_t<decltype(of_biases)>;
            parallel_for(threads, parts, [&](size_t part) {
                auto [output, end] = share(w.outputs, parts, part, ROWS);
                const auto some = [&](auto rows) {
                    multiply<bits, group_size, rows, Scale, Bias>(x, w, output, y);
                    output += rows;
                };
                while (output + ROWS <= end) some(std::integral_constant<size_t, ROWS>());
                while (output < end) some(std::integral_constant<size_t, 1>());
            });
        });
    });
}

}  // namespace

bool has_fixed_point() { return true; }

bool prepare(const float* x, const QuantizedMatrix& w, FixedPointRow& row) {
    return w.bits == 4 ? prepare_row<4>(x, w, row) : prepare_row<8>(x, w, row);
}

void fixed_point_product(const FixedPointRow& x, const QuantizedMatrix& w, float* y, int threads) {
    with_bits(w.bits, [&](auto bits) {
        switch (w.group_size) {
            case 32:
                return product<bits, 32>(x, w, y, threads);
            case 64:
                return product<bits, 64>(x, w, y, threads);
            default:
                return product<bits, 128>(x, w, y, threads);
        }
    });
}

#else

bool has_fixed_point() { return false; }
bool prepare(const float*, const QuantizedMatrix&, FixedPointRow&) { return false; }
void fixed_point_product(const FixedPointRow&, const QuantizedMatrix&, float*, int) {}

#endif

}  // namespace inferspec
