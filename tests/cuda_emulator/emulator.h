// The words of cuda/dialect.h on a processor: kernels run lane by lane on one thread.
//
// Each lane is a context with a stack of its own, which runs until it ends or waits at a collective. So a
// result that depends on who comes first, a barrier that is missing, or a mask that names other lanes than
// come shows here; races within memory do not.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#define SPLATSCOPE_FUNCTION inline

// Launches as `emulate_NAME`, which gives back null or a message saying what the kernel did wrong.
#define KERNEL(name, Params, max_threads)                                                              \
    static void name##_body(const Params& p);                                                          \
    extern "C" std::int64_t emulate_size_##name() {                                                    \
        return sizeof(Params);                                                                         \
    }                                                                                                  \
    extern "C" const char* emulate_##name(std::int64_t grid, int block, std::int64_t shared_bytes,     \
                                          const void* params, std::uint64_t seed, int order_mode) {    \
        Params copy;                                                                                   \
        std::memcpy(&copy, params, sizeof(Params));                                                    \
        const auto body = [](const void* given) { name##_body(*static_cast<const Params*>(given)); };  \
        return ::splatscope::emulator::launch(                                                         \
            {#name, __FILE__, body, &copy, grid, block, max_threads, shared_bytes, seed, order_mode}); \
    }                                                                                                  \
    static void name##_body([[maybe_unused]] const Params& p)

#define SHARED_ARRAY(type, name, count)      \
    alignas(16) static type name[count];     \
    static std::int64_t name##_of_block = 0; \
    ::splatscope::emulator::begin_shared_array(name, sizeof(name), name##_of_block)
#define DYNAMIC_SHARED(name) unsigned char* const name = ::splatscope::emulator::dynamic_shared()

namespace splatscope {

constexpr unsigned all_lanes = 0xffffffffu;

namespace emulator {

struct Launch {
    const char* kernel;
    const char* file;
    void (*body)(const void* params);
    const void* params;
    std::int64_t grid;
    int block;
    int max_threads;
    std::int64_t shared_bytes;  // dynamic
    std::uint64_t seed;
    int order_mode;  // 0: as numbered; 1: blocks, warps and lanes in an order drawn from the seed
};

// Runs every block. Null, or a message that lives until the next launch.
const char* launch(const Launch& launch);

struct Place {
    int thread;
    int block_size;
    std::int64_t block;
    std::int64_t block_count;
};
extern Place place;  // of the lane that runs now

enum class Collective : int {
    none,
    sync_block,
    sync_block_count,
    sync_warp,
    ballot,
    any_lane,
    all_lanes_hold,
    shuffle,
    shuffle_xor,
    shuffle_up
};

// Where a collective stands in the source.
struct Site {
    const char* file;
    int line;
};

// Waits for the lanes of the mask (warp) or for the whole block, and gives back this lane's result.
std::uint64_t meet(Collective collective, unsigned mask, std::uint64_t value, int argument, Site site);

// Poisons a shared array at the block's first arrival.
void begin_shared_array(void* array, std::size_t bytes, std::int64_t& of_block);
unsigned char* dynamic_shared();

template <typename Number>
Number meet_with(Collective collective, unsigned mask, Number value, int argument, Site site) {
    static_assert(sizeof(Number) == 4 || sizeof(Number) == 8, "shuffles take numbers of 32 or 64 bits");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(Number));
    bits = meet(collective, mask, bits, argument, site);
    std::memcpy(&value, &bits, sizeof(Number));
    return value;
}

}  // namespace emulator

// The caller's place in the source, by default argument.
#define SPLATSCOPE_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline int thread_index() {
    return emulator::place.thread;
}
inline int block_size() {
    return emulator::place.block_size;
}
inline std::int64_t block_index() {
    return emulator::place.block;
}
inline std::int64_t block_count() {
    return emulator::place.block_count;
}
inline int lane() {
    return emulator::place.thread & 31;
}
inline int warp_index() {
    return emulator::place.thread >> 5;
}
inline std::uint32_t lanes_below() {
    return (1u << lane()) - 1u;
}

inline void sync_block(SPLATSCOPE_SITE) {
    emulator::meet(emulator::Collective::sync_block, all_lanes, 0, 0, {file, line});
}
inline int sync_block_count(bool holds, SPLATSCOPE_SITE) {
    return static_cast<int>(
        emulator::meet(emulator::Collective::sync_block_count, all_lanes, holds, 0, {file, line}));
}
inline void sync_warp(unsigned mask, SPLATSCOPE_SITE) {
    emulator::meet(emulator::Collective::sync_warp, mask, 0, 0, {file, line});
}
inline unsigned ballot(unsigned mask, bool holds, SPLATSCOPE_SITE) {
    return static_cast<unsigned>(emulator::meet(emulator::Collective::ballot, mask, holds, 0, {file, line}));
}
inline bool any_lane(unsigned mask, bool holds, SPLATSCOPE_SITE) {
    return emulator::meet(emulator::Collective::any_lane, mask, holds, 0, {file, line}) != 0;
}
inline bool all_lanes_hold(unsigned mask, bool holds, SPLATSCOPE_SITE) {
    return emulator::meet(emulator::Collective::all_lanes_hold, mask, holds, 0, {file, line}) != 0;
}
template <typename Number>
Number shuffle(unsigned mask, Number value, int source, SPLATSCOPE_SITE) {
    return emulator::meet_with(emulator::Collective::shuffle, mask, value, source, {file, line});
}
template <typename Number>
Number shuffle_xor(unsigned mask, Number value, int bits, SPLATSCOPE_SITE) {
    return emulator::meet_with(emulator::Collective::shuffle_xor, mask, value, bits, {file, line});
}
template <typename Number>
Number shuffle_up(unsigned mask, Number value, int distance, SPLATSCOPE_SITE) {
    return emulator::meet_with(emulator::Collective::shuffle_up, mask, value, distance, {file, line});
}
#undef SPLATSCOPE_SITE

// One lane runs at a time, so plain arithmetic is atomic.
namespace emulator {
template <typename Number>
Number exchange(Number* at, Number next) {
    const Number before = *at;
    *at = next;
    return before;
}
}  // namespace emulator

inline float atomic_add(float* at, float value) {
    return emulator::exchange(at, *at + value);
}
inline std::int32_t atomic_add(std::int32_t* at, std::int32_t value) {
    return emulator::exchange(at, *at + value);
}
inline std::uint32_t atomic_add(std::uint32_t* at, std::uint32_t value) {
    return emulator::exchange(at, *at + value);
}
inline unsigned long long atomic_add(unsigned long long* at, unsigned long long value) {
    return emulator::exchange(at, *at + value);
}
inline std::int32_t atomic_or(std::int32_t* at, std::int32_t bits) {
    return emulator::exchange(at, *at | bits);
}

inline int count_bits(std::uint32_t bits) {
    return __builtin_popcount(bits);
}
inline int first_bit(std::uint32_t bits) {
    return __builtin_ffs(static_cast<int>(bits)) - 1;
}
inline std::uint32_t float_bits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline float bits_float(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <typename Number>
Number load_read_only(const Number* at) {
    return *at;
}

// A result off by up to two units in the last place, as it may be on a device, always alike for one number
// `x`; what is denormal is 0 there.
inline float roughly(float exact, float x) {
    const int kind = std::fpclassify(exact);
    if (kind == FP_SUBNORMAL) return 0.0f;
    if (kind != FP_NORMAL) return exact;
    const std::uint32_t spread = float_bits(x) * 2654435761u;
    return bits_float(float_bits(exact) + (spread >> 16) % 5u - 2u);
}
inline float exponential(float x) {
    return roughly(std::exp(x), x);
}
inline float reciprocal(float x) {
    return roughly(1.0f / x, x);
}
inline float exponential_of(float x) {
    return std::exp(x);
}
inline float logarithm(float x) {
    return std::log(x);
}
inline float square_root(float x) {
    return std::sqrt(x);
}
inline float fused(float a, float b, float c) {
    return std::fma(a, b, c);
}
inline float ceiling(float x) {
    return std::ceil(x);
}
inline float floor_of(float x) {
    return std::floor(x);
}
inline float absolute(float x) {
    return std::fabs(x);
}
inline std::int32_t absolute(std::int32_t x) {
    return x < 0 ? -x : x;
}
inline float minimum(float a, float b) {
    return std::fmin(a, b);
}
inline float maximum(float a, float b) {
    return std::fmax(a, b);
}
template <typename Number>
Number minimum(Number a, Number b) {
    return b < a ? b : a;
}
template <typename Number>
Number maximum(Number a, Number b) {
    return a < b ? b : a;
}
template <typename A, typename B>
void minimum(A, B) = delete;
template <typename A, typename B>
void maximum(A, B) = delete;

}  // namespace splatscope
