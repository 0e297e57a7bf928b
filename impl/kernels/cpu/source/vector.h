// Vectors of floats, one kind for each instruction set that a translation unit may be compiled for, with the same names:
// AVX-512, AVX2 with FMA, NEON, and GCC's vectors of four, which every processor has in some way.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "dtypes.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__AVX512DQ__)
#define INFERSPEC_AVX512 1
#include <immintrin.h>
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define INFERSPEC_AVX2 1
#include <immintrin.h>
#elif defined(__aarch64__) && !defined(INFERSPEC_PORTABLE)
#define INFERSPEC_NEON 1
#include <arm_neon.h>
#endif

namespace inferspec {

// Of each kind:
//   Vector::width                       floats in it
//   fill(x)                             x in every lane
//   load(p), load(p, n)                 from float, Float16 or Bfloat16; only the first n < width are read, the others are 0
//   store(p, v), store(p, v, n)         to them, rounded to nearest even; only the first n are written
//   a + b, a - b, a * b, a / b
//   fma(a, b, c)                        a * b + c, rounded once where the processor can
//   max(a, b), min(a, b)                a where it is larger (smaller), else b: so b where one of them is NaN
//   less(a, b, c, d)                    c in the lanes where a < b, d in the others
//   first(n, a, b)                      a in the first n lanes, b in the others
//   sum(v), largest(v)                  over the lanes; largest knows no NaN
//   round(v)                            to a whole number, |v| < 2^22
//   times_power(v, n)                   v · 2^n for whole n in [-252, 254]

#if defined(INFERSPEC_AVX512)

struct Vector {
    static constexpr size_t width = 16;
    __m512 value;
};

inline __mmask16 lanes(size_t count) { return static_cast<__mmask16>((1u << count) - 1); }

inline Vector fill(float x) { return {_mm512_set1_ps(x)}; }
inline Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline Vector load(const float* p, size_t count) { return {_mm512_maskz_loadu_ps(lanes(count), p)}; }

inline Vector widened(__m256i halves, const Float16*) { return {_mm512_cvtph_ps(halves)}; }
inline Vector widened(__m256i halves, const Bfloat16*) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}
template <typename T>
Vector load(const T* p) {
    return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), p);
}
template <typename T>
Vector load(const T* p, size_t count) {
    return widened(_mm256_maskz_loadu_epi16(lanes(count), p), p);
}

inline __m256i narrowed(Vector v, const Float16*) { return _mm512_cvtps_ph(v.value, _MM_FROUND_TO_NEAREST_INT); }
inline __m256i narrowed(Vector v, const Bfloat16*) {
    const __m512i bits = _mm512_castps_si512(v.value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(v.value, v.value, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}
inline void store(float* p, Vector v) { _mm512_storeu_ps(p, v.value); }
inline void store(float* p, Vector v, size_t count) { _mm512_mask_storeu_ps(p, lanes(count), v.value); }
template <typename T>
void store(T* p, Vector v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrowed(v, p));
}
template <typename T>
void store(T* p, Vector v, size_t count) {
    _mm256_mask_storeu_epi16(p, lanes(count), narrowed(v, p));
}

inline Vector operator+(Vector a, Vector b) { return {_mm512_add_ps(a.value, b.value)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm512_sub_ps(a.value, b.value)}; }
inline Vector operator*(Vector a, Vector b) { return {_mm512_mul_ps(a.value, b.value)}; }
inline Vector operator/(Vector a, Vector b) { return {_mm512_div_ps(a.value, b.value)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {_mm512_fmadd_ps(a.value, b.value, c.value)}; }
inline Vector max(Vector a, Vector b) { return {_mm512_max_ps(a.value, b.value)}; }
inline Vector min(Vector a, Vector b) { return {_mm512_min_ps(a.value, b.value)}; }
inline Vector less(Vector a, Vector b, Vector c, Vector d) {
    return {_mm512_mask_mov_ps(d.value, _mm512_cmp_ps_mask(a.value, b.value, _CMP_LT_OQ), c.value)};
}
inline Vector first(size_t count, Vector a, Vector b) {
    return {_mm512_mask_mov_ps(b.value, lanes(count), a.value)};
}
inline float sum(Vector v) { return _mm512_reduce_add_ps(v.value); }
inline float largest(Vector v) { return _mm512_reduce_max_ps(v.value); }
inline Vector round(Vector v) { return {_mm512_roundscale_ps(v.value, _MM_FROUND_TO_NEAREST_INT)}; }
inline Vector times_power(Vector v, Vector n) { return {_mm512_scalef_ps(v.value, n.value)}; }

#elif defined(INFERSPEC_AVX2)

struct Vector {
    static constexpr size_t width = 8;
    __m256 value;
};

inline Vector fill(float x) { return {_mm256_set1_ps(x)}; }
inline __m256i lanes(size_t count) {
    const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), numbers);
}

inline Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline Vector load(const float* p, size_t count) { return {_mm256_maskload_ps(p, lanes(count))}; }

inline Vector widened(__m128i halves, const Float16*) { return {_mm256_cvtph_ps(halves)}; }
inline Vector widened(__m128i halves, const Bfloat16*) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16))};
}
template <typename T>
Vector load(const T* p) {
    return widened(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), p);
}
template <typename T>
Vector load(const T* p, size_t count) {
    alignas(16) T some[8] = {};
    std::memcpy(some, p, count * sizeof(T));
    return load(some);
}

inline __m128i narrowed(Vector v, const Float16*) { return _mm256_cvtps_ph(v.value, _MM_FROUND_TO_NEAREST_INT); }
inline __m128i narrowed(Vector v, const Bfloat16*) {
    const __m256i bits = _mm256_castps_si256(v.value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v.value, v.value, _CMP_UNORD_Q));
    const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}
inline void store(float* p, Vector v) { _mm256_storeu_ps(p, v.value); }
inline void store(float* p, Vector v, size_t count) { _mm256_maskstore_ps(p, lanes(count), v.value); }
template <typename T>
void store(T* p, Vector v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrowed(v, p));
}
template <typename T>
void store(T* p, Vector v, size_t count) {
    alignas(16) T all[8];
    store(all, v);
    std::memcpy(p, all, count * sizeof(T));
}

inline Vector operator+(Vector a, Vector b) { return {_mm256_add_ps(a.value, b.value)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm256_sub_ps(a.value, b.value)}; }
inline Vector operator*(Vector a, Vector b) { return {_mm256_mul_ps(a.value, b.value)}; }
inline Vector operator/(Vector a, Vector b) { return {_mm256_div_ps(a.value, b.value)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {_mm256_fmadd_ps(a.value, b.value, c.value)}; }
inline Vector max(Vector a, Vector b) { return {_mm256_max_ps(a.value, b.value)}; }
inline Vector min(Vector a, Vector b) { return {_mm256_min_ps(a.value, b.value)}; }
inline Vector less(Vector a, Vector b, Vector c, Vector d) {
    return {_mm256_blendv_ps(d.value, c.value, _mm256_cmp_ps(a.value, b.value, _CMP_LT_OQ))};
}
inline Vector first(size_t count, Vector a, Vector b) {
    return {_mm256_blendv_ps(b.value, a.value, _mm256_castsi256_ps(lanes(count)))};
}
inline float sum(Vector v) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(v.value), _mm256_extractf128_ps(v.value, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
inline float largest(Vector v) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(v.value), _mm256_extractf128_ps(v.value, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}
inline Vector round(Vector v) { return {_mm256_round_ps(v.value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline Vector power(__m256i n) {
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23))};
}
inline Vector times_power(Vector v, Vector n) {
    const __m256i whole = _mm256_cvtps_epi32(n.value), half = _mm256_srai_epi32(whole, 1);
    return v * power(half) * power(_mm256_sub_epi32(whole, half));
}

#elif defined(INFERSPEC_NEON)

struct Vector {
    static constexpr size_t width = 4;
    float32x4_t value;
};

inline Vector fill(float x) { return {vdupq_n_f32(x)}; }
inline uint32x4_t lanes(size_t count) {
    const uint32x4_t numbers = {0, 1, 2, 3};
    return vcltq_u32(numbers, vdupq_n_u32(static_cast<uint32_t>(count)));
}

inline Vector load(const float* p) { return {vld1q_f32(p)}; }
inline Vector load(const Float16* p) {
    return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p))))};
}
inline Vector load(const Bfloat16* p) {
    return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(reinterpret_cast<const uint16_t*>(p)), 16))};
}
template <typename T>
Vector load(const T* p, size_t count) {
    alignas(16) T some[4] = {};
    std::memcpy(some, p, count * sizeof(T));
    return load(some);
}

inline void store(float* p, Vector v) { vst1q_f32(p, v.value); }
inline void store(Float16* p, Vector v) {
    vst1_u16(reinterpret_cast<uint16_t*>(p), vreinterpret_u16_f16(vcvt_f16_f32(v.value)));
}
inline void store(Bfloat16* p, Vector v) {
    const uint32x4_t bits = vreinterpretq_u32_f32(v.value);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const uint32x4_t number = vceqq_f32(v.value, v.value);
    vst1_u16(reinterpret_cast<uint16_t*>(p), vshrn_n_u32(vbslq_u32(number, rounded, quiet), 16));
}
template <typename T>
void store(T* p, Vector v, size_t count) {
    alignas(16) T all[4];
    store(all, v);
    std::memcpy(p, all, count * sizeof(T));
}

inline Vector operator+(Vector a, Vector b) { return {vaddq_f32(a.value, b.value)}; }
inline Vector operator-(Vector a, Vector b) { return {vsubq_f32(a.value, b.value)}; }
inline Vector operator*(Vector a, Vector b) { return {vmulq_f32(a.value, b.value)}; }
inline Vector operator/(Vector a, Vector b) { return {vdivq_f32(a.value, b.value)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {vfmaq_f32(c.value, a.value, b.value)}; }
inline Vector max(Vector a, Vector b) { return {vbslq_f32(vcgtq_f32(a.value, b.value), a.value, b.value)}; }
inline Vector min(Vector a, Vector b) { return {vbslq_f32(vcltq_f32(a.value, b.value), a.value, b.value)}; }
inline Vector less(Vector a, Vector b, Vector c, Vector d) {
    return {vbslq_f32(vcltq_f32(a.value, b.value), c.value, d.value)};
}
inline Vector first(size_t count, Vector a, Vector b) { return {vbslq_f32(lanes(count), a.value, b.value)}; }
inline float sum(Vector v) { return vaddvq_f32(v.value); }
inline float largest(Vector v) { return vmaxvq_f32(v.value); }
inline Vector round(Vector v) { return {vrndnq_f32(v.value)}; }
inline Vector power(int32x4_t n) {
    return {vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23))};
}
inline Vector times_power(Vector v, Vector n) {
    const int32x4_t whole = vcvtnq_s32_f32(n.value), half = vshrq_n_s32(whole, 1);
    return v * power(half) * power(vsubq_s32(whole, half));
}

#else

struct Vector {
    static constexpr size_t width = 4;
    typedef float Native __attribute__((vector_size(16)));
    Native value;
};

inline Vector fill(float x) { return {Vector::Native{x, x, x, x}}; }
template <typename T>
Vector load(const T* p) {
    return {Vector::Native{to_float(p[0]), to_float(p[1]), to_float(p[2]), to_float(p[3])}};
}
inline Vector load(const float* p) {
    Vector v;
    std::memcpy(&v.value, p, sizeof v.value);
    return v;
}
template <typename T>
Vector load(const T* p, size_t count) {
    T some[4] = {};
    std::memcpy(some, p, count * sizeof(T));
    return load(some);
}
template <typename T>
void store(T* p, Vector v) {
    for (size_t i = 0; i < 4; ++i) p[i] = from_float<T>(v.value[i]);
}
template <typename T>
void store(T* p, Vector v, size_t count) {
    for (size_t i = 0; i < count; ++i) p[i] = from_float<T>(v.value[i]);
}

inline Vector operator+(Vector a, Vector b) { return {a.value + b.value}; }
inline Vector operator-(Vector a, Vector b) { return {a.value - b.value}; }
inline Vector operator*(Vector a, Vector b) { return {a.value * b.value}; }
inline Vector operator/(Vector a, Vector b) { return {a.value / b.value}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {a.value * b.value + c.value}; }
inline Vector max(Vector a, Vector b) { return {a.value > b.value ? a.value : b.value}; }
inline Vector min(Vector a, Vector b) { return {a.value < b.value ? a.value : b.value}; }
inline Vector less(Vector a, Vector b, Vector c, Vector d) { return {a.value < b.value ? c.value : d.value}; }
inline Vector first(size_t count, Vector a, Vector b) {
    for (size_t i = 0; i < count; ++i) b.value[i] = a.value[i];
    return b;
}
inline float sum(Vector v) { return (v.value[0] + v.value[2]) + (v.value[1] + v.value[3]); }
inline float largest(Vector v) {
    const float even = v.value[0] > v.value[2] ? v.value[0] : v.value[2];
    const float odd = v.value[1] > v.value[3] ? v.value[1] : v.value[3];
    return even > odd ? even : odd;
}
inline Vector round(Vector v) {
    const Vector ones = fill(12582912.0f);  // 1.5 · 2^23: the sum has no digits behind the point
    return (v + ones) - ones;
}
inline Vector times_power(Vector v, Vector n) {
    for (size_t i = 0; i < 4; ++i) {
        const int whole = n.value[i] == n.value[i] ? static_cast<int>(n.value[i]) : 0, half = whole >> 1;
        v.value[i] *= of_bits(static_cast<uint32_t>(half + 127) << 23);
        v.value[i] *= of_bits(static_cast<uint32_t>(whole - half + 127) << 23);
    }
    return v;
}

#endif

// e^v within two units in the last place: 0 below -104, infinity above 89, NaN where v is NaN, exactly 1 for 0.
// Cody and Waite's reduction, and the minimax polynomial of Cephes' expf (S. Moshier).
inline Vector exp(Vector v) {
    v = min(fill(89.0f), max(fill(-104.0f), v));
    const Vector n = round(v * fill(1.44269504f));
    const Vector r = fma(n, fill(2.12194440e-4f), fma(n, fill(-0.693359375f), v));
    Vector p = fill(1.9875691500e-4f);
    for (float coefficient : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
        p = fma(p, r, fill(coefficient));
    }
    return times_power(fma(p * r, r, r + fill(1.0f)), n);
}

}  // namespace inferspec
