// Loops over the pool, for kernels: compiled into each instruction set's own namespace.
#pragma once

#include "params.h"
#include "thread_pool.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Body>
int64_t run_bodies(int64_t first, int64_t count, int workers, const Recall* recall, const Body& body) {
    return run_tasks(
        first, count, workers,
        [](void* context, int64_t index, int worker) { (*static_cast<const Body*>(context))(index, worker); },
        const_cast<Body*>(&body), recall);
}

// body(index, worker) for every index below count.
template <typename Body>
void parallel(int64_t count, int workers, const Body& body) {
    run_bodies(0, count, workers, nullptr, body);
}

// A kernel's loops, one after the other, done in pieces unless `params` is null: each call of the kernel goes
// on where the last one ended, and a loop that somebody has interrupted returns false, as the kernel then
// does.
class Pieces {
  public:
    explicit Pieces(PieceParams* params) : params_(params) {}

    // body(index, worker) for every index below count.
    template <typename Body>
    bool loop(int64_t count, int workers, const Body& body) {
        if (!params_) {
            parallel(count, workers, body);
            return true;
        }
        const int64_t begin = begin_, done_before = params_->next - begin;
        begin_ += count;
        if (done_before >= count) return true;
        const Recall recall{params_->called, params_->patience_ns};
        const int64_t done = run_bodies(done_before, count, workers, &recall, body);
        params_->next = begin + done;
        return done == count;
    }

    // body(begin, end) for blocks of a fixed size, whatever the number of threads.
    template <typename Body>
    bool blocks(int64_t count, int64_t block, const Body& body) {
        return loop((count + block - 1) / block, thread_count(), [&](int64_t index, int) {
            const int64_t begin = index * block;
            body(begin, begin + block < count ? begin + block : count);
        });
    }

    // All loops are done.
    void finish() {
        if (params_) params_->next = all_pieces_done;
    }

  private:
    PieceParams* params_;
    int64_t begin_ = 0;  // of the next loop's tasks among all
};

// The same for a kernel that is done at once.
template <typename Body>
void parallel_blocks(int64_t count, int64_t block, const Body& body) {
    Pieces(nullptr).blocks(count, block, body);
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
