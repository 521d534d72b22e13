// Loops over the pool, for kernels: compiled into each instruction set's own namespace.
#pragma once

#include <cstring>

#include "params.h"
#include "thread_pool.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

template <typename Body>
bool run_bodies(int64_t count, int workers, const Recall* recall, int64_t* begun, const Body& body) {
    return run_tasks(
        count, workers,
        [](void* context, int64_t index, int worker) { (*static_cast<const Body*>(context))(index, worker); },
        const_cast<Body*>(&body), recall, begun);
}

// body(index, worker) for every index below count.
template <typename Body>
void parallel(int64_t count, int workers, const Body& body) {
    int64_t begun[task_shares] = {};
    run_bodies(count, workers, nullptr, begun, body);
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
        if (params_->next > number_++) return true;
        const Recall recall{params_->called, params_->patience_ns};
        if (!run_bodies(count, workers, &recall, params_->begun, body)) return false;
        std::memset(params_->begun, 0, sizeof params_->begun);
        params_->next = number_;
        return true;
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
    int64_t number_ = 0;  // of the next loop
};

// The same for a kernel that is done at once.
template <typename Body>
void parallel_blocks(int64_t count, int64_t block, const Body& body) {
    Pieces(nullptr).blocks(count, block, body);
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
