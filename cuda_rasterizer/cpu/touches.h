// Which vectors of a tile splats touch and how their alphas are found, a lane for each of as many splats of
// the tile's list as a vector has: nothing branches, since which rows a small splat touches cannot be
// guessed.
#pragma once

#include <cstddef>

#include "alphas.h"
#include "splat_rows.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// Relative error of an exponent, with room to spare: its terms may be large and cancel.
constexpr double exponent_error = 2e-6;

// Some numbers of a splat's record, a lane for each of a vector of splats.
template <typename Real>
struct RecordLanes {
    using Vector = typename Simd<Real>::Vector;
    Vector mean_x, mean_y, a, b, c, surely_below, reach_x, reach_y, ridge;

    RecordLanes(const SplatRecord<Real>* records, const SplatRows<Real>& splats) {
        constexpr int numbers = 12;
        static_assert(offsetof(SplatRecord<Real>, ridge) == (numbers - 1) * sizeof(Real),
                      "the last to be read");
        Lanes<Real> number[numbers];
        load_rows<numbers>(reinterpret_cast<const Real*>(records), record_size, splats, number);
        mean_x = number[0].vector;
        mean_y = number[1].vector;
        a = number[2].vector;
        b = number[3].vector;
        c = number[4].vector;
        surely_below = number[6].vector - Real(threshold_slack);
        reach_x = number[7].vector;
        reach_y = number[8].vector;
        ridge = number[11].vector;
    }
};

// Of Count splats, in sets a bit each.
template <typename Real, int Count>
class Touches {
  public:
    static constexpr int width = Simd<Real>::width, chunks = TileGeometry<Real>::chunks;
    using Integer = typename Simd<Real>::Integer;
    static_assert(Count % width == 0 && Count <= 32, "whole vectors of splats, and a bit for each");

    // Those of list[0], list[1], …, `used` of them, in the vectors that are live.
    void find(const TileGeometry<Real>& g, const VectorSet<Real>& live, const SplatRecord<Real>* records,
              const int32_t* list, int used) {
        for (int begin = 0; begin < Count; begin += width) {
            if (begin < used)
                find_vector(g, live, RecordLanes<Real>(records, SplatRows<Real>::from(0, list, begin, used)),
                            begin, used - begin);
            else
                for (int chunk = 0; chunk < chunks; ++chunk) store(rows_[chunk] + begin, Mask{});
        }
    }

    // The live vectors of splat i: those where the exponent's largest value, anywhere between the first and
    // the last pixel centre, reaches the threshold.
    VectorSet<Real> vectors(int i) const {
        VectorSet<Real> set;
        for (int chunk = 0; chunk < chunks; ++chunk) set.add(chunk * tile_size, uint64_t(rows_[chunk][i]));
        return set;
    }
    // How its alphas are to be found (see by_exponentials).
    int way(int i) const { return int(ways_[i]); }

    // The splats that touch any of `count` neighbours of a chunk.
    uint32_t touching(int first_vector, int count) const {
        const Integer rows = ((Integer(1) << count) - 1) << first_vector % tile_size;
        return splats_where([&](int begin) {
            return (load<Mask>(rows_[first_vector / tile_size] + begin) & (Mask{} + rows)) != 0;
        });
    }
    // The splats that touch anything, by way: all whose way is in a range.
    uint32_t touching_by_way(Integer first, Integer last) const {
        return splats_where([&](int begin) {
            Mask any{};
            for (int chunk = 0; chunk < chunks; ++chunk) any |= load<Mask>(rows_[chunk] + begin);
            const Mask ways = load<Mask>(ways_ + begin);
            return (any != 0) & (ways >= first) & (ways <= last);
        });
    }

  private:
    using Vector = typename Simd<Real>::Vector;
    using Mask = typename Simd<Real>::Mask;

    alignas(64) Integer rows_[chunks][Count];  // of a chunk, as bits
    alignas(64) Integer ways_[Count];

    template <typename Holds>
    static uint32_t splats_where(const Holds& holds) {
        uint32_t found = 0;
        for (int begin = 0; begin < Count; begin += width) found |= uint32_t(lanes_of(holds(begin))) << begin;
        return found;
    }
    static Mask lanes_before(int count) { return lane_numbers<Mask>() < Integer(count); }

    // Along a row the exponent is largest on the ridge, or at the end of the chunk that is nearer to it.
    void find_vector(const TileGeometry<Real>& g, const VectorSet<Real>& live, const RecordLanes<Real>& s,
                     int begin, int used) {
        // Terms that are smaller by their error make no exponent smaller than it may be computed.
        const Vector a = s.a * Real(1 - exponent_error), c = s.c * Real(1 - exponent_error);
        const Vector left = broadcast(Real(g.x0) + Real(0.5)) - s.mean_x;
        Mask found[chunks] = {}, within{}, above{};
        for (int row = 0; row < tile_size; ++row) {
            const Vector y = broadcast(g.row_centers[row]) - s.mean_y;
            const Mask inside = (y <= s.reach_y) & (y >= -s.reach_y);
            within -= inside;
            above -= y < -s.reach_y;
            const Vector top = s.ridge * y, by = s.b * y, cyy = c * y * y;
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const Vector first = left + Real(chunk * width),
                             last = left + Real(chunk * width + width - 1);
                const Vector x = minimum(maximum(top, first), last);
                const Mask hit = inside & (fused(fused(a, x, by), x, cyy) >= s.surely_below);
                found[chunk] |= hit & (Mask{} + (Integer(1) << row));
            }
        }
        for (int chunk = 0; chunk < chunks; ++chunk)
            store(rows_[chunk] + begin,
                  found[chunk] & lanes_before(used) & (Mask{} + Integer(live.rows(chunk))));
        store(ways_ + begin, ways_of(g, s, left, within, above));
    }

    // The way of each splat, of which so many rows are within its reach, behind so many above it. A splat in
    // few pixels (24 or 32, by measurement) is better off without the others' products.
    static Mask ways_of(const TileGeometry<Real>& g, const RecordLanes<Real>& s, Vector left, Mask within,
                        Mask above) {
        constexpr Integer half = tile_size / 2, quarter = tile_size / 4;
        const auto choose = [](Mask which, Real a, Real b) { return which ? broadcast(a) : broadcast(b); };
        const Vector right = left + Real(tile_size - 1);
        const Vector columns = minimum(right, s.reach_x) - maximum(left, -s.reach_x);
        const Vector covered = __builtin_convertvector(within, Vector) * columns;
        const Mask few = within <= half;
        const Mask middle = few ? (above < half ? above : Mask{} + half) + quarter : Mask{} + half;
        // See ProductTerms.
        const Vector y = __builtin_convertvector(middle, Vector) + g.row_centers[0] - s.mean_y;
        const Vector along = 2 * s.c * y, first = s.b * left + along, last = s.b * right + along;
        const Vector most = choose(few, steepest<Real, quarter>, steepest<Real, half>);
        const Mask slowly = (first <= most) & (first >= -most) & (last <= most) & (last >= -most);
        const Mask gently = s.c * choose(few, quarter * quarter, half * half) >= broadcast(Real(lowest_fall));
        const Mask covers = covered >= choose(few, 24, 32);
        return slowly & gently & covers & (few ? middle : Mask{} + by_products_everywhere);
    }
};

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
