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

// The same in pieces, unless `pieces` is null: begins where the last call ended, and returns early when
// somebody calls. Whether all are done.
template <typename Body>
bool parallel_in_pieces(int64_t count, int workers, PieceParams* pieces, const Body& body) {
    if (!pieces) {
        parallel(count, workers, body);
        return true;
    }
    const Recall recall{pieces->called, pieces->patience_ns};
    const int64_t next = run_bodies(pieces->next, count, workers, &recall, body);
    pieces->next = next < count ? next : all_pieces_done;
    return next >= count;
}

// body(begin, end) for blocks of a fixed size, whatever the number of threads.
template <typename Body>
void parallel_blocks(int64_t count, int64_t block, const Body& body) {
    const int64_t blocks = (count + block - 1) / block;
    parallel(blocks, thread_count(), [&](int64_t index, int) {
        const int64_t begin = index * block;
        body(begin, begin + block < count ? begin + block : count);
    });
}

}  // namespace SPLATSCOPE_ISA
}  // namespace splatscope
