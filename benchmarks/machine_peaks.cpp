// What this machine can do at most: fused multiply-adds that wait for nothing, and a plain copy.
//
// Compiled by benchmarks/machine_peaks.py for the machine it runs on.

#include <cstdint>
#include <cstring>

namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif
using Vector = float __attribute__((vector_size(vector_bytes)));

constexpr int chains = 12;  // two a cycle with a latency of up to six

}  // namespace

extern "C" int peak_lanes() {
    return vector_bytes / int(sizeof(float));
}

extern "C" int peak_chains() {
    return chains;
}

// `rounds` times one multiply-add of every lane of every chain; the sum keeps the compiler from leaving it.
extern "C" float multiply_adds(int64_t rounds) {
    Vector sums[chains] = {};
    Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
    for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
        for (int c = 0; c < chains; ++c) {
            sums[c] = sums[c] * factor + term;
            asm volatile("" : "+x"(sums[c]));
        }
    }
    float sum = 0;
    for (int c = 0; c < chains; ++c) sum += sums[c][0];
    return sum;
}

extern "C" void copy(void* to, const void* from, int64_t bytes) {
    std::memcpy(to, from, size_t(bytes));
}
