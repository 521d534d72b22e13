// Rows of a few numbers a splat, between memory and the 32 lanes of a warp.
//
// Lanes that each read or write their own row touch memory in strides. Here the warp moves its 32 rows as one
// run of numbers, and the lanes exchange them through `tile`, 32 rows of shared memory whose pitch is odd, so
// that no two lanes meet in a bank.
#pragma once

#include "dialect.h"

namespace splatscope {

constexpr int splats_a_warp = 32;

// Numbers from one row of a tile to the next.
SPLATSCOPE_FUNCTION constexpr int tile_pitch(int size) {
    return size | 1;
}

// A row that one instruction moves. For arrays that Python allocates; those of users may lie anywhere.
template <int size>
struct alignas(size * sizeof(float)) AlignedRow {
    float number[size];
};

// Into `tile`, the rows of the lanes named by `wanted`; `rows` points to the first lane's, the others follow
// `stride` numbers apart.
template <int size>
SPLATSCOPE_FUNCTION void load_rows(const float* rows, int64_t stride, unsigned wanted, float* tile) {
    // So many loads are on their way before the first of them is waited for.
    constexpr int batch = size % 9 == 0 ? 9 : 8;
    static_assert(size % batch == 0, "rows are loaded in whole batches");
    sync_warp(all_lanes);
    for (int first = 0; first < size && wanted != 0; first += batch) {
        float numbers[batch];
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            const int number = splats_a_warp * (first + k) + lane(), row = number / size;
            const float* from = rows + row * stride + number % size;
            numbers[k] = (wanted >> row) & 1u ? load_read_only(from) : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < batch; ++k) {
            const int number = splats_a_warp * (first + k) + lane();
            tile[number / size * tile_pitch(size) + number % size] = numbers[k];
        }
    }
    sync_warp(all_lanes);
}

// From every lane its row, to the first `count` of 32 rows one behind the other.
template <int size>
SPLATSCOPE_FUNCTION void store_rows(const float* row, float* rows, int count, float* tile) {
    sync_warp(all_lanes);
#pragma unroll
    for (int k = 0; k < size; ++k) tile[lane() * tile_pitch(size) + k] = row[k];
    sync_warp(all_lanes);
#pragma unroll
    for (int k = 0; k < size; ++k) {
        const int number = splats_a_warp * k + lane();
        if (number < size * count) rows[number] = tile[number / size * tile_pitch(size) + number % size];
    }
}

}  // namespace splatscope
