// Numbers too small to be normal are taken as zero: they cost a hundred times the time and add nothing.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace splatscope {

#if defined(__x86_64__)
using FloatMode = unsigned int;
inline FloatMode float_mode() {
    return _mm_getcsr();
}
inline void set_float_mode(FloatMode mode) {
    _mm_setcsr(mode);
}
constexpr FloatMode flush_bits = 0x8040;  // FTZ and DAZ
#elif defined(__aarch64__)
using FloatMode = uint64_t;
inline FloatMode float_mode() {
    FloatMode mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
inline void set_float_mode(FloatMode mode) {
    asm volatile("msr fpcr, %0" ::"r"(mode));
}
constexpr FloatMode flush_bits = 1u << 24;  // FZ
#else
using FloatMode = int;
inline FloatMode float_mode() {
    return 0;
}
inline void set_float_mode(FloatMode) {}
constexpr FloatMode flush_bits = 0;
#endif

inline void flush_denormals() {
    set_float_mode(float_mode() | flush_bits);
}

// Flushes in the calling thread, whose own mode comes back at the end of the scope.
class DenormalGuard {
  public:
    DenormalGuard() : before_(float_mode()) { flush_denormals(); }
    ~DenormalGuard() { set_float_mode(before_); }
    DenormalGuard(const DenormalGuard&) = delete;
    DenormalGuard& operator=(const DenormalGuard&) = delete;

  private:
    FloatMode before_;
};

}  // namespace splatscope
