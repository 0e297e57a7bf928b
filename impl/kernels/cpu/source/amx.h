// What kernels on Intel's AMX share: tiles of 16 rows of 32 bfloat16 numbers, and float32 numbers taken apart into such.
#pragma once

namespace inferspec {

// Whether the processor and the system have AMX for this process, and the path uses it.
bool has_tiles();

}  // namespace inferspec

#if defined(__AMX_BF16__) && defined(__linux__)
#define INFERSPEC_AMX 1

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "dtypes.h"

namespace inferspec {

struct alignas(64) TileConfiguration {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// How many bfloat16 numbers make up one of a dtype exactly.
inline size_t parts_of(Dtype dtype) { return dtype == Dtype::BFLOAT16 ? 1 : dtype == Dtype::FLOAT16 ? 2 : 3; }

// The bfloat16 number in the high halves of what is returned; `value` keeps the rest. Cut off, not rounded: the rest is
// exact. Infinities and NaN leave none.
inline __m512i cut_off(__m512& value) {
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    __m512i cut = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(-65536));
    cut = _mm512_mask_or_epi32(cut, nan, cut, _mm512_set1_epi32(0x400000));
    const __mmask16 infinite = _mm512_fpclass_ps_mask(value, 0x99);  // infinities and NaN
    value = _mm512_maskz_sub_ps(_knot_mask16(infinite), value, _mm512_castsi512_ps(cut));
    return cut;
}

}  // namespace inferspec

#endif
