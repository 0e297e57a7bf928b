// The three floating-point dtypes of arrays, and conversions between them: to the nearest, ties to even, NaN kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace inferspec {

enum class Dtype : int { FLOAT32 = 0, FLOAT16 = 1, BFLOAT16 = 2 };

struct Float16 {
    uint16_t bits;
};

struct Bfloat16 {
    uint16_t bits;
};

inline uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float of_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float to_float(float value) { return value; }

inline float to_float(Bfloat16 value) { return of_bits(static_cast<uint32_t>(value.bits) << 16); }

inline float to_float(Float16 half) {
#if defined(__F16C__)
    return _cvtsh_ss(half.bits);
#elif defined(__aarch64__)
    __fp16 value;
    std::memcpy(&value, &half, sizeof value);
    return value;
#else
    const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000) << 16, rest = half.bits & 0x7fff;
    if (rest >= 0x7c00) {  // infinity, NaN
        return of_bits(sign | 0x7f800000 | rest << 13);
    }
    // The exponent's bias is put right by a product, which is exact and knows subnormal numbers.
    return of_bits(sign | bits_of(of_bits(rest << 13) * of_bits(0x77800000)));
#endif
}

template <typename T>
T from_float(float value);

template <>
inline float from_float<float>(float value) {
    return value;
}

template <>
inline Bfloat16 from_float<Bfloat16>(float value) {
    const uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) {
        return {static_cast<uint16_t>(bits >> 16 | 0x40)};
    }
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

template <>
inline Float16 from_float<Float16>(float value) {
#if defined(__F16C__)
    return {static_cast<uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT))};
#elif defined(__aarch64__)
    const __fp16 half = static_cast<__fp16>(value);
    Float16 result;
    std::memcpy(&result, &half, sizeof result);
    return result;
#else
    const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000) {
        return {static_cast<uint16_t>(sign | 0x7e00 | (rest >> 13 & 0x1ff))};
    }
    if (rest >= 0x477ff000) {  // rounds to 65536 or more
        return {static_cast<uint16_t>(sign | 0x7c00)};
    }
    if (rest < 0x38800000) {  // subnormal in float16: the sum with 1/2 rounds to its last place
        return {static_cast<uint16_t>(sign | (bits_of(of_bits(rest) + 0.5f) - bits_of(0.5f)))};
    }
    return {static_cast<uint16_t>(sign | ((rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13))};
#endif
}

inline size_t size_of(Dtype dtype) { return dtype == Dtype::FLOAT32 ? 4 : 2; }

// Calls `use` with a null pointer of the dtype's C++ type: a template over dtypes out of one that is known at run time.
template <typename Use>
decltype(auto) with_type(Dtype dtype, Use&& use) {
    switch (dtype) {
        case Dtype::FLOAT16:
            return use(static_cast<Float16*>(nullptr));
        case Dtype::BFLOAT16:
            return use(static_cast<Bfloat16*>(nullptr));
        default:
            return use(static_cast<float*>(nullptr));
    }
}

}  // namespace inferspec
