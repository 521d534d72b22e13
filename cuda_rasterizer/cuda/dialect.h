// The words that kernels are written in. Every .cu file includes this first, and nothing but our headers
// after it.
//
// Under NVRTC and nvcc the words are CUDA's own. Any other compiler is asked for "emulator.h" instead, which
// gives the same words their meaning on a processor (tests/cuda_emulator; nothing of it is in the package).
//
//   KERNEL(name, Params, max_threads) {...}   a kernel over one POD, by value, called `p`; launched by Python
//   SHARED_ARRAY(type, name, count);          of the block, uninitialised; in kernel bodies only
//   DYNAMIC_SHARED(name);                     unsigned char name[], 16-byte aligned, its size set at launch
//
// Blocks are one-dimensional and a multiple of 32. A collective's mask names exactly the lanes that reach it.
#pragma once

#if defined(__CUDACC__)

#if defined(__CUDACC_RTC__)  // which finds no <cstdint>
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <cstdint>
#endif

#define SPLATSCOPE_FUNCTION __device__ __forceinline__

#define KERNEL(name, Params, max_threads) \
    extern "C" __global__ void __launch_bounds__(max_threads) name(const __grid_constant__ Params p)
#define SHARED_ARRAY(type, name, count) __shared__ __align__(16) type name[count]
#define DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]

namespace splatscope {

constexpr unsigned all_lanes = 0xffffffffu;

SPLATSCOPE_FUNCTION int thread_index() {
    return static_cast<int>(threadIdx.x);
}
SPLATSCOPE_FUNCTION int block_size() {
    return static_cast<int>(blockDim.x);
}
SPLATSCOPE_FUNCTION int64_t block_index() {
    return blockIdx.x;
}
SPLATSCOPE_FUNCTION int64_t block_count() {
    return gridDim.x;
}
SPLATSCOPE_FUNCTION int lane() {
    return static_cast<int>(threadIdx.x & 31u);
}
SPLATSCOPE_FUNCTION int warp_index() {
    return static_cast<int>(threadIdx.x >> 5);
}
SPLATSCOPE_FUNCTION uint32_t lanes_below() {
    return (1u << lane()) - 1u;
}

// Barriers of the block: every one of its threads reaches each.
SPLATSCOPE_FUNCTION void sync_block() {
    __syncthreads();
}
SPLATSCOPE_FUNCTION int sync_block_count(bool holds) {
    return __syncthreads_count(holds);
}

SPLATSCOPE_FUNCTION void sync_warp(unsigned mask) {
    __syncwarp(mask);
}
SPLATSCOPE_FUNCTION unsigned ballot(unsigned mask, bool holds) {
    return __ballot_sync(mask, holds);
}
SPLATSCOPE_FUNCTION bool any_lane(unsigned mask, bool holds) {
    return __any_sync(mask, holds) != 0;
}
SPLATSCOPE_FUNCTION bool all_lanes_hold(unsigned mask, bool holds) {
    return __all_sync(mask, holds) != 0;
}
// Numbers of 32 or 64 bits. The lane that is read must be in the mask; up gives back one's own value where
// there is no such lane.
template <typename Number>
SPLATSCOPE_FUNCTION Number shuffle(unsigned mask, Number value, int source) {
    return __shfl_sync(mask, value, source);
}
template <typename Number>
SPLATSCOPE_FUNCTION Number shuffle_xor(unsigned mask, Number value, int bits) {
    return __shfl_xor_sync(mask, value, bits);
}
template <typename Number>
SPLATSCOPE_FUNCTION Number shuffle_up(unsigned mask, Number value, int distance) {
    return __shfl_up_sync(mask, value, static_cast<unsigned>(distance));
}

// Each gives what was there before.
SPLATSCOPE_FUNCTION float atomic_add(float* at, float value) {
    return atomicAdd(at, value);
}
SPLATSCOPE_FUNCTION int32_t atomic_add(int32_t* at, int32_t value) {
    return atomicAdd(at, value);
}
SPLATSCOPE_FUNCTION uint32_t atomic_add(uint32_t* at, uint32_t value) {
    return atomicAdd(at, value);
}
SPLATSCOPE_FUNCTION unsigned long long atomic_add(unsigned long long* at, unsigned long long value) {
    return atomicAdd(at, value);
}
SPLATSCOPE_FUNCTION int32_t atomic_or(int32_t* at, int32_t bits) {
    return atomicOr(at, bits);
}

SPLATSCOPE_FUNCTION int count_bits(uint32_t bits) {
    return __popc(bits);
}
// The lowest bit set, from 0; -1 where none is.
SPLATSCOPE_FUNCTION int first_bit(uint32_t bits) {
    return __ffs(static_cast<int>(bits)) - 1;
}
SPLATSCOPE_FUNCTION uint32_t float_bits(float value) {
    return __float_as_uint(value);
}
SPLATSCOPE_FUNCTION float bits_float(uint32_t bits) {
    return __uint_as_float(bits);
}
template <typename Number>
SPLATSCOPE_FUNCTION Number load_read_only(const Number* at) {
    return __ldg(at);
}

// Fast, good to about 2 + |x| units in the last place.
SPLATSCOPE_FUNCTION float exponential(float x) {
    return __expf(x);
}
// Fast, good to one or two units in the last place.
SPLATSCOPE_FUNCTION float reciprocal(float x) {
    return __fdividef(1.0f, x);
}
// As good as float allows.
SPLATSCOPE_FUNCTION float exponential_of(float x) {
    return expf(x);
}
SPLATSCOPE_FUNCTION float logarithm(float x) {
    return logf(x);
}
SPLATSCOPE_FUNCTION float square_root(float x) {
    return __fsqrt_rn(x);
}
SPLATSCOPE_FUNCTION float fused(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
}
SPLATSCOPE_FUNCTION float ceiling(float x) {
    return ceilf(x);
}
SPLATSCOPE_FUNCTION float floor_of(float x) {
    return floorf(x);
}
SPLATSCOPE_FUNCTION float absolute(float x) {
    return fabsf(x);
}
SPLATSCOPE_FUNCTION int32_t absolute(int32_t x) {
    return x < 0 ? -x : x;
}
// Of a NaN and a number: the number. Both of one type, lest an int64_t pass through float unseen.
SPLATSCOPE_FUNCTION float minimum(float a, float b) {
    return fminf(a, b);
}
SPLATSCOPE_FUNCTION float maximum(float a, float b) {
    return fmaxf(a, b);
}
template <typename Number>
SPLATSCOPE_FUNCTION Number minimum(Number a, Number b) {
    return b < a ? b : a;
}
template <typename Number>
SPLATSCOPE_FUNCTION Number maximum(Number a, Number b) {
    return a < b ? b : a;
}
template <typename A, typename B>
SPLATSCOPE_FUNCTION void minimum(A, B) = delete;
template <typename A, typename B>
SPLATSCOPE_FUNCTION void maximum(A, B) = delete;

}  // namespace splatscope

#else
#include "emulator.h"
#endif
