// Painted patterns with crisp edges: planks, lettering, stickers.
//
// Patterns take coordinates in scene units. Edges and strokes, not noise: they hold fine detail that
// a half-size copy loses, yet each piece of paint is one flat colour.
#pragma once

#include <cstring>
#include <string>

#include "vectors.h"

// Linear colour from six hexadecimal digits of sRGB.
inline Vec srgb(unsigned digits) {
    const auto level = [digits](int shift) {
        const double x = (digits >> shift & 255) / 255.0;
        return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
    };
    return {level(16), level(8), level(0)};
}

// x - floor(x): where in its period.
inline double part(double x) {
    return x - std::floor(x);
}

// Whether x lies in an odd period: stripes.
inline bool odd(double x) {
    return std::fmod(std::abs(std::floor(x)), 2.0) > 0.5;
}

// A repeatable number in 0..1 for a pair of whole numbers.
inline double hashed(double a, double b, uint64_t salt) {
    Random random(static_cast<uint64_t>(static_cast<int64_t>(a) * 7919 + static_cast<int64_t>(b)) * 31 +
                  salt);
    return random.next();
}

// Boards along u with dark joints; each has its own tint between two colours.
inline Vec planks(double u, double v, double width, double length, Vec one, Vec other) {
    const double row = std::floor(v / width);
    const double along = u / length + hashed(row, 0, 5);
    const double board = std::floor(along);
    const Vec painted = mix(other, one, hashed(row, board, 9));
    const bool joint = v / width - row < 0.07 || along - board < 0.07 * width / length;
    return joint ? 0.25 * painted : painted;
}

// Five columns by seven rows a letter, drawn for this file; a row is five bits.
inline const unsigned char* glyph(char letter) {
    static const struct {
        char letter;
        unsigned char rows[7];
    } kFont[] = {{'A', {14, 17, 17, 31, 17, 17, 17}}, {'G', {15, 16, 16, 23, 17, 17, 15}},
                 {'L', {16, 16, 16, 16, 16, 16, 31}}, {'P', {30, 17, 17, 30, 16, 16, 16}},
                 {'S', {15, 16, 16, 14, 1, 1, 30}},   {'T', {31, 4, 4, 4, 4, 4, 4}},
                 {'U', {17, 17, 17, 17, 17, 17, 14}}};
    for (const auto& entry : kFont)
        if (entry.letter == letter) return entry.rows;
    return kFont[0].rows;
}

// Whether a point lies on capital letters of height `size`; u runs right from the middle, v up.
inline bool on_letters(double u, double v, const std::string& text, double size) {
    const double pixel = size / 7;
    const int width = static_cast<int>(text.size()) * 6 - 1;
    const int column = static_cast<int>(std::floor(u / pixel + width / 2.0));
    const int row = static_cast<int>(std::floor(3.5 - v / pixel));
    if (column < 0 || column >= width || row < 0 || row > 6 || column % 6 == 5) return false;
    return glyph(text[static_cast<size_t>(column / 6)])[row] >> (4 - column % 6) & 1;
}

// Whether a point lies on rows of small print: words of random length.
inline bool on_print(double u, double v, double pitch, uint64_t salt) {
    const double row = std::floor(v / pitch);
    return std::abs(v / pitch - row - 0.5) < 0.25 && hashed(std::floor(u / (pitch * 0.8)), row, salt) < 0.72;
}

// A puzzle cube of half edge `half`: three by three coloured squares a side on grey.
inline Vec stickers(Vec local, double half) {
    static const Vec kColors[] = {srgb(0xc8322b), srgb(0xf0f0ea), srgb(0xe9b824),
                                  srgb(0x2f6fb0), srgb(0x3f8f4f), srgb(0xe07a2c)};
    const double at[3] = {local.x / half, local.y / half, local.z / half};
    int axis = 0;
    for (int i = 1; i < 3; ++i)
        if (std::abs(at[i]) > std::abs(at[axis])) axis = i;
    double cell[2], gap = 0;
    for (int i = 0; i < 2; ++i) {
        const double place = (at[(axis + 1 + i) % 3] + 1) * 1.5;
        cell[i] = std::clamp(std::floor(place), 0.0, 2.0);
        gap = std::max(gap, std::abs(place - cell[i] - 0.5));
    }
    if (gap > 0.42) return srgb(0x34343a);
    const double face = axis * 2 + (at[axis] > 0 ? 1 : 0);
    return kColors[std::min(5, static_cast<int>(hashed(cell[0] + 3 * cell[1], face, 3) * 6))];
}
