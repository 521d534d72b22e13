// Adam (Kingma and Ba 2015) on all tensors of a model in one launch, in place.

#include "cuda_params.h"
#include "splat_rows.h"

namespace splatscope {
namespace {

constexpr int threads = 256;
constexpr int vector_size = 4;  // numbers that one instruction moves
using Vector = AlignedRow<vector_size>;

struct Rates {
    float beta2, rest1, rest2, eps, step_size, correction;
};

// The order of operations is that of torch.optim.Adam and of the CPU kernel, to the bit.
SPLATSCOPE_FUNCTION void move(const Rates& r, float g, float& parameter, float& mean, float& square) {
    mean = mean + r.rest1 * (g - mean);
    square = square * r.beta2 + r.rest2 * g * g;
    parameter -= r.step_size * (mean / (square_root(square) / r.correction + r.eps));
}

// Which numbers of a block belong to splats that move.
struct SeenRows {
    const int32_t* radii;  // of the block's first row, or null where all move
    uint32_t row_size;
    uint32_t begin;  // of the block within its first row

    SPLATSCOPE_FUNCTION bool holds(int number) const {
        return !radii || radii[2 * int64_t((begin + number) / row_size)] > 0;
    }
    // Of `vector_size` numbers one behind the other, a bit each.
    SPLATSCOPE_FUNCTION unsigned holding(int number) const {
        if (!radii) return (1u << vector_size) - 1u;
        const uint32_t place = begin + uint32_t(number);
        int64_t row = place / row_size;
        uint32_t column = place % row_size;
        unsigned bits = 0;
#pragma unroll
        for (int k = 0; k < vector_size; ++k) {
            if (radii[2 * row] > 0) bits |= 1u << k;
            if (++column < row_size) continue;
            column = 0;
            ++row;
        }
        return bits;
    }
};

SPLATSCOPE_FUNCTION bool is_aligned(const AdamGroupParams<float>& group) {
    const uint64_t addresses =
        reinterpret_cast<uint64_t>(group.parameter) | reinterpret_cast<uint64_t>(group.gradient) |
        reinterpret_cast<uint64_t>(group.exp_avg) | reinterpret_cast<uint64_t>(group.exp_avg_sq);
    return addresses % sizeof(Vector) == 0;
}

SPLATSCOPE_FUNCTION void move_vector(const AdamGroupParams<float>& group, const Rates& rates, int64_t at,
                                     unsigned moving) {
    Vector& parameters = *reinterpret_cast<Vector*>(group.parameter + at);
    Vector& means = *reinterpret_cast<Vector*>(group.exp_avg + at);
    Vector& squares = *reinterpret_cast<Vector*>(group.exp_avg_sq + at);
    const Vector g = *reinterpret_cast<const Vector*>(group.gradient + at);
    Vector parameter = parameters, mean = means, square = squares;
#pragma unroll
    for (int k = 0; k < vector_size; ++k)
        if ((moving >> k) & 1u)
            move(rates, g.number[k], parameter.number[k], mean.number[k], square.number[k]);
    parameters = parameter;
    means = mean;
    squares = square;
}

}  // namespace

KERNEL(adam, AdamParams<float>, threads) {
    if (p.flags && (p.flags[0] != 0 || (p.flags[1] & found_seen) == 0)) return;
    int64_t block = block_index();
    int index = 0;
    for (;; ++index) {
        const int64_t blocks = (p.groups[index].count + adam_block - 1) / adam_block;
        if (block < blocks) break;
        block -= blocks;
    }
    const AdamGroupParams<float>& group = p.groups[index];
    const Rates rates = {float(p.beta2), float(1.0 - p.beta1),   float(1.0 - p.beta2),
                         float(p.eps),   float(group.step_size), float(group.correction)};
    const int64_t begin = block * adam_block;
    const int count = int(minimum(group.count - begin, int64_t(adam_block)));
    SeenRows seen = {};
    if (p.radii) {
        const int64_t first_row = begin / group.row_size;
        seen = {p.radii + 2 * first_row, uint32_t(group.row_size),
                uint32_t(begin - first_row * group.row_size)};
    }

    const int vectors = is_aligned(group) ? count / vector_size : 0;
#pragma unroll
    for (int turn = 0; turn < adam_block / (threads * vector_size); ++turn) {
        const int vector = turn * threads + thread_index();
        if (vector >= vectors) continue;
        const unsigned moving = seen.holding(vector * vector_size);
        if (moving != 0) move_vector(group, rates, begin + vector * vector_size, moving);
    }
    for (int k = vectors * vector_size + thread_index(); k < count; k += threads) {
        const int64_t at = begin + k;
        if (seen.holds(k))
            move(rates, group.gradient[at], group.parameter[at], group.exp_avg[at], group.exp_avg_sq[at]);
    }
}

}  // namespace splatscope
