// Between arrays, a row of numbers a splat, and lanes, a splat each: small transposes.
#pragma once

#include <cstdint>
#include <cstring>

#include "dialect.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// The splats of the lanes. Lanes that have none repeat the last one: their results are its own, so that
// they may be written twice; only sums need to know (`used`).
template <typename Real>
struct SplatRows {
    static constexpr int width = Simd<Real>::width;
    int64_t splat[width];
    int used;

    // Splats begin, begin + 1, … below end.
    static SplatRows from(int64_t begin, int64_t end) {
        SplatRows rows;
        for (int i = 0; i < width; ++i) rows.splat[i] = begin + i < end ? begin + i : end - 1;
        rows.used = end - begin < width ? int(end - begin) : width;
        return rows;
    }
    // Splats first + offsets[begin], first + offsets[begin + 1], … below offsets[end].
    static SplatRows from(int64_t first, const int32_t* offsets, int begin, int end) {
        SplatRows rows;
        for (int i = 0; i < width; ++i)
            rows.splat[i] = first + offsets[begin + i < end ? begin + i : end - 1];
        rows.used = end - begin < width ? end - begin : width;
        return rows;
    }
};

#if defined(__SSE2__)
// Four numbers of each row, the fourth 0 where Count is 3, one row's beside the other's in quarters of a
// vector.
template <int Count>
inline __m128 load_quarter(const float* row) {
    if (Count >= 4) return _mm_loadu_ps(row);
    return _mm_movelh_ps(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row))),
                         Count == 3 ? _mm_load_ss(row + 2) : _mm_setzero_ps());
}
template <int Count>
inline void store_quarter(float* row, __m128 numbers) {
    if (Count >= 4) return _mm_storeu_ps(row, numbers);
    _mm_storel_pi(reinterpret_cast<__m64*>(row), numbers);
    if (Count == 3) _mm_store_ss(row + 2, _mm_movehl_ps(numbers, numbers));
}

#if defined(__AVX512F__)
inline FloatVector quarters_of(__m128 a, __m128 b, __m128 c, __m128 d) {
    FloatVector v = _mm512_zextps128_ps512(a);
    v = _mm512_maskz_insertf32x4(0xffff, v, b, 1);
    v = _mm512_maskz_insertf32x4(0xffff, v, c, 2);
    return _mm512_maskz_insertf32x4(0xffff, v, d, 3);
}
#define SPLATSCOPE_SHUFFLE(a, b, pattern) _mm512_maskz_shuffle_ps(0xffff, a, b, pattern)
#elif defined(__AVX2__)
inline FloatVector quarters_of(__m128 a, __m128 b) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1);
}
#define SPLATSCOPE_SHUFFLE(a, b, pattern) _mm256_shuffle_ps(a, b, pattern)
#else
#define SPLATSCOPE_SHUFFLE(a, b, pattern) _mm_shuffle_ps(a, b, pattern)
#endif

// Transposes the four by four numbers of each quarter.
inline void transpose_quarters(FloatVector* v) {
    const FloatVector low_01 = SPLATSCOPE_SHUFFLE(v[0], v[1], 0x44),
                      high_01 = SPLATSCOPE_SHUFFLE(v[0], v[1], 0xee);
    const FloatVector low_23 = SPLATSCOPE_SHUFFLE(v[2], v[3], 0x44),
                      high_23 = SPLATSCOPE_SHUFFLE(v[2], v[3], 0xee);
    v[0] = SPLATSCOPE_SHUFFLE(low_01, low_23, 0x88);
    v[1] = SPLATSCOPE_SHUFFLE(low_01, low_23, 0xdd);
    v[2] = SPLATSCOPE_SHUFFLE(high_01, high_23, 0x88);
    v[3] = SPLATSCOPE_SHUFFLE(high_01, high_23, 0xdd);
}
#undef SPLATSCOPE_SHUFFLE

// Columns first, first + 1, … (Count of them, at most four) of some rows.
template <int Count>
inline void load_four(const float* const* row, int first, Lanes<float>* columns) {
    FloatVector v[4];
    for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
        v[i] = quarters_of(load_quarter<Count>(row[i] + first), load_quarter<Count>(row[i + 4] + first),
                           load_quarter<Count>(row[i + 8] + first), load_quarter<Count>(row[i + 12] + first));
#elif defined(__AVX2__)
        v[i] = quarters_of(load_quarter<Count>(row[i] + first), load_quarter<Count>(row[i + 4] + first));
#else
        v[i] = load_quarter<Count>(row[i] + first);
#endif
    }
    transpose_quarters(v);
    for (int k = 0; k < Count && k < 4; ++k) columns[k] = v[k];
}
template <int Count>
inline void store_four(float* const* row, int first, const Lanes<float>* columns) {
    FloatVector v[4];
    for (int k = 0; k < 4; ++k) v[k] = k < Count ? columns[k].vector : FloatVector{};
    transpose_quarters(v);
    for (int i = 0; i < 4; ++i) {
#if defined(__AVX512F__)
        store_quarter<Count>(row[i] + first, _mm512_maskz_extractf32x4_ps(0xf, v[i], 0));
        store_quarter<Count>(row[i + 4] + first, _mm512_maskz_extractf32x4_ps(0xf, v[i], 1));
        store_quarter<Count>(row[i + 8] + first, _mm512_maskz_extractf32x4_ps(0xf, v[i], 2));
        store_quarter<Count>(row[i + 12] + first, _mm512_maskz_extractf32x4_ps(0xf, v[i], 3));
#elif defined(__AVX2__)
        store_quarter<Count>(row[i] + first, _mm256_castps256_ps128(v[i]));
        store_quarter<Count>(row[i + 4] + first, _mm256_extractf128_ps(v[i], 1));
#else
        store_quarter<Count>(row[i] + first, v[i]);
#endif
    }
}
#endif

// So many vectors of splats ahead rows are asked for.
constexpr int rows_ahead = 2;

// Asks for a row of Count numbers, to be read or, with `Write` 1, to be written.
template <int Count, int Write, typename Real>
inline void ask_for_row(const Real* row) {
    constexpr int line = 64 / int(sizeof(Real));
    for (int k = 0; k < Count; k += line) __builtin_prefetch(row + k, Write);
    __builtin_prefetch(row + Count - 1, Write);
}

// columns[k] gets number k of each lane's row, which begins `stride` numbers after that of the splat before.
template <int Count, typename Real>
inline void load_rows(const Real* array, int64_t stride, const SplatRows<Real>& rows, Lanes<Real>* columns) {
    const Real* row[rows.width];
    for (int i = 0; i < rows.width; ++i) row[i] = array + rows.splat[i] * stride;
#if defined(__SSE2__)
    if constexpr (sizeof(Real) == sizeof(float) && Count > 1) {
        // The last four overlap those before: nothing is read beyond a row.
        for (int first = 0; first + 4 <= Count; first += 4) load_four<4>(row, first, columns + first);
        if (Count < 4) load_four<Count>(row, 0, columns);
        if (Count > 4 && Count % 4) load_four<4>(row, Count - 4, columns + Count - 4);
        return;
    }
#endif
    for (int k = 0; k < Count; ++k) {
        typename Lanes<Real>::Vector column{};
        for (int i = 0; i < rows.width; ++i) column[i] = row[i][k];
        columns[k] = column;
    }
}

// The same backwards: Count numbers of each lane's row are written.
template <int Count, typename Real>
inline void store_rows(Real* array, int64_t stride, const SplatRows<Real>& rows, const Lanes<Real>* columns) {
    Real* row[rows.width];
    for (int i = 0; i < rows.width; ++i) row[i] = array + rows.splat[i] * stride;
#if defined(__SSE2__)
    if constexpr (sizeof(Real) == sizeof(float) && Count > 1) {
        for (int first = 0; first + 4 <= Count; first += 4) store_four<4>(row, first, columns + first);
        if (Count < 4) store_four<Count>(row, 0, columns);
        if (Count > 4 && Count % 4) store_four<4>(row, Count - 4, columns + Count - 4);
        return;
    }
#endif
    for (int i = 0; i < rows.width; ++i)
        for (int k = 0; k < Count; ++k) {
            const Real number = columns[k].vector[i];
            std::memcpy(row[i] + k, &number, sizeof number);
        }
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
