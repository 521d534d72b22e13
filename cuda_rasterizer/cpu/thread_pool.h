// The pool that all kernels share: persistent threads that spin briefly, then sleep.
//
// A core has near what it wrote last, and what another one wrote may be far. Neighbouring tasks touch
// neighbouring memory, so each worker begins at an end of its own, the same in every loop, and goes on
// towards the others; it helps them with what is left. Which worker runs a task must never show in a result.
#pragma once

#include <cstdint>

#include "constants.h"

namespace splatscope {

using Task = void (*)(void* context, int64_t index, int worker);

// When to come back before all tasks are done.
struct Recall {
    const int64_t* called;  // as soon as this is not 0, which any thread may see to at any time
    int64_t patience_ns;    // after so long; negative: never
};

// The first of `count` tasks that is in a share; that of the share behind the last is `count`.
inline int64_t share_begin(int64_t count, int share) {
    return count * share / task_shares;
}

// Runs task(context, i, worker) for every i below `count`, the caller being worker 0, and returns true when
// all are done. With a `recall` it may return false earlier: those under way are finished, and each thread
// has done one at least. `begun` (task_shares) is how many of each share have been done by earlier calls, and
// is brought up to date. At most `workers` threads take part. A second caller at the same time waits for the
// first.
bool run_tasks(int64_t count, int workers, Task task, void* context, const Recall* recall, int64_t* begun);

// False when the system gives no more threads; the pool then has as many as it got.
bool set_thread_count(int count);
int thread_count();

}  // namespace splatscope
