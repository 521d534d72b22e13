// The alphas of several splats of a tile's list, found together before any of them is composited: so many
// alphas that do not depend on each other keep the machine busy, and splats of a kind follow each other, so
// that it guesses well what comes next.
#pragma once

#include <cstring>

#include "touches.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Real>
class AlphaBatch {
  public:
    using Vector = typename Simd<Real>::Vector;
    static constexpr int size = VectorSet<Real>::size;
    // Neighbours of a column of vectors, whose pixels fit into the registers together (see Strip).
    static constexpr int strip = many_registers ? 4 : 2;
    // As many splats as leave room in the first-level cache.
    static constexpr int count = vector_bytes == 64 ? 32 : 16;

    // Those of splat i, in the strips that it touches.
    const Vector* of(int i) const { return alphas_ + i * size; }

    // Of splats list[0], list[1], … as they touch the tile.
    void find(const TileGeometry<Real>& g, const Limits<Real>& limits, const SplatRecord<Real>* records,
              const int32_t* list, const Touches<Real, count>& touches) {
        find_by_exponentials(g, limits, records, list, touches);
        find_by_products<tile_size / 2>(g, limits, records, list, touches);
        find_by_products<tile_size / 4>(g, limits, records, list, touches);
    }

  private:
    // A number for each row of a tile.
    using Column = uint32_t __attribute__((vector_size(tile_size * sizeof(uint32_t))));

    // What is worked out for each splat before the loop over its vectors.
    union Terms {
        ExponentialTerms<Real> exponential;
        ProductTerms<Real, tile_size / 2> everywhere;
        ProductTerms<Real, tile_size / 4> within;
    };
    template <int Half>
    static ProductTerms<Real, Half>& products_of(Terms& terms) {
        if constexpr (Half == tile_size / 2)
            return terms.everywhere;
        else
            return terms.within;
    }

    // Of the strips in which the rows of a chunk begin and end, what they may not reach.
    void clear_ends(int i, int chunk, int first, int last) {
        Vector* const column = alphas_ + i * size + chunk * tile_size;
        for (int k = 0; k < strip - 1; ++k)
            column[(first & -strip) + k] = column[(last & -strip) + strip - 1 - k] = Vector{};
    }

    // One loop over the vectors of all the splats: where one of a few rounds for each ends cannot be guessed.
    void find_by_exponentials(const TileGeometry<Real>& g, const Limits<Real>& limits,
                              const SplatRecord<Real>* records, const int32_t* list,
                              const Touches<Real, count>& touches) {
        int wanted = 0;
        uint32_t splats = touches.touching_by_way(by_exponentials, by_exponentials);
        for (; splats; splats &= splats - 1) {
            const int i = __builtin_ctz(splats);
            const VectorSet<Real> vectors = touches.vectors(i);
            terms_[i].exponential = ExponentialTerms<Real>(records[list[i]], g);
            for (int chunk = 0; chunk < g.chunks; ++chunk) {
                const uint64_t rows = vectors.rows(chunk);
                if (!rows) continue;
                const int first = __builtin_ctzll(rows), last = 63 - __builtin_clzll(rows);
                clear_ends(i, chunk, first, last);
                // A whole column, of which those too many are written over.
                const Column places = column_ + uint32_t(i * size + chunk * tile_size + first);
                std::memcpy(wanted_ + wanted, &places, sizeof places);
                wanted += last - first + 1;
            }
        }
        for (int k = 0; k < wanted; ++k) {
            const uint32_t place = wanted_[k], vector = place % size;
            alphas_[place] =
                terms_[place / size].exponential.alphas(vector / tile_size, vector % tile_size, limits);
        }
    }

    // First what all products begin with, in which one thing waits for another, then all of them.
    template <int Half>
    void find_by_products(const TileGeometry<Real>& g, const Limits<Real>& limits,
                          const SplatRecord<Real>* records, const int32_t* list,
                          const Touches<Real, count>& touches) {
        constexpr bool everywhere = Half == tile_size / 2;
        const auto middle_of = [&](int i) { return everywhere ? Half : touches.way(i); };
        const uint32_t splats =
            everywhere ? touches.touching_by_way(by_products_everywhere, by_products_everywhere)
                       : touches.touching_by_way(by_exponentials + 1, by_products_everywhere - 1);
        for (uint32_t left = splats; left; left &= left - 1) {
            const int i = __builtin_ctz(left), middle = middle_of(i);
            products_of<Half>(terms_[i]) = ProductTerms<Real, Half>(records[list[i]], g, middle);
            for (int chunk = 0; !everywhere && chunk < g.chunks; ++chunk)
                clear_ends(i, chunk, middle - Half, middle + Half - 1);
        }
        for (uint32_t left = splats; left; left &= left - 1) {
            const int i = __builtin_ctz(left);
            products_of<Half>(terms_[i]).alphas(limits, middle_of(i), alphas_ + i * size);
        }
    }

    alignas(64) Vector alphas_[count * size];
    const Column column_ = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Terms terms_[count];
    uint32_t wanted_[count * size + tile_size];  // places in `alphas_`
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
