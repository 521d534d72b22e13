// Three-component vectors and the generator of sample positions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr double kPi = 3.14159265358979323846;
constexpr double kFar = 1e9;    // the distance of a miss
constexpr double kNear = 1e-5;  // closer hits are the surface that the ray started on

struct Vec {
    double x = 0, y = 0, z = 0;
};

inline Vec operator+(Vec a, Vec b) {
    return {a.x + b.x, a.y + b.y, a.z + b.z};
}
inline Vec operator-(Vec a, Vec b) {
    return {a.x - b.x, a.y - b.y, a.z - b.z};
}
inline Vec operator-(Vec a) {
    return {-a.x, -a.y, -a.z};
}
inline Vec operator*(Vec a, Vec b) {
    return {a.x * b.x, a.y * b.y, a.z * b.z};
}
inline Vec operator/(Vec a, Vec b) {
    return {a.x / b.x, a.y / b.y, a.z / b.z};
}
inline Vec operator*(double s, Vec a) {
    return {s * a.x, s * a.y, s * a.z};
}
inline double dot(Vec a, Vec b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
inline double length(Vec a) {
    return std::sqrt(dot(a, a));
}
inline Vec unit(Vec a) {
    return (1.0 / std::max(length(a), 1e-12)) * a;
}
inline Vec cross(Vec a, Vec b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline Vec mix(Vec a, Vec b, double share) {
    return (1 - share) * a + share * b;
}
inline Vec lowest(Vec a, Vec b) {
    return {std::min(a.x, b.x), std::min(a.y, b.y), std::min(a.z, b.z)};
}
inline Vec highest(Vec a, Vec b) {
    return {std::max(a.x, b.x), std::max(a.y, b.y), std::max(a.z, b.z)};
}

// Turns a vector about the vertical; `degrees` negated turns it back.
inline Vec turned(Vec a, double degrees) {
    const double c = std::cos(degrees * kPi / 180), s = std::sin(degrees * kPi / 180);
    return {c * a.x - s * a.y, s * a.x + c * a.y, a.z};
}

// SplitMix64 (Steele et al. 2014): the same numbers on every machine.
class Random {
  public:
    explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 1) {}
    double next() {
        uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
    }

  private:
    uint64_t state_;
};
