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

// `rounds` times one multiply-add of every lane of every chain. The chains have names of their own, and not
// places in an array, which the compiler would leave in memory; the empty assembly keeps it from leaving any.
extern "C" float multiply_adds(int64_t rounds) {
    const Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
    Vector a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{}, i{}, j{}, k{}, l{};
    for (int64_t round = 0; round < rounds; ++round) {
        a = a * factor + term;
        b = b * factor + term;
        c = c * factor + term;
        d = d * factor + term;
        e = e * factor + term;
        f = f * factor + term;
        g = g * factor + term;
        h = h * factor + term;
        i = i * factor + term;
        j = j * factor + term;
        k = k * factor + term;
        l = l * factor + term;
        asm volatile("" : "+x"(a), "+x"(b), "+x"(c), "+x"(d), "+x"(e), "+x"(f));
        asm volatile("" : "+x"(g), "+x"(h), "+x"(i), "+x"(j), "+x"(k), "+x"(l));
    }
    const Vector sum = ((a + b) + (c + d)) + ((e + f) + (g + h)) + ((i + j) + (k + l));
    return sum[0];
}

extern "C" void copy(void* to, const void* from, int64_t bytes) {
    std::memcpy(to, from, size_t(bytes));
}
