// Loops over the pool, for kernels: compiled into each instruction set's own namespace.
#pragma once

#include "thread_pool.h"

namespace splatscope {
namespace SPLATSCOPE_ISA {

// body(index, worker) for every index below count.
template <typename Body>
void parallel(int64_t count, int workers, const Body& body) {
    run_tasks(
        count, workers,
        [](void* context, int64_t index, int worker) { (*static_cast<const Body*>(context))(index, worker); },
        const_cast<Body*>(&body));
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
