// The pool that all kernels share: persistent threads that spin briefly, then sleep.
//
// Tasks are numbered and drawn from one counter, so whoever is free takes the next. Which worker runs a
// task must never show in a result.
#pragma once

#include <cstdint>

namespace splatscope {

using Task = void (*)(void* context, int64_t index, int worker);

// When to come back before all tasks are done.
struct Recall {
    const int64_t* called;  // as soon as this is not 0, which any thread may see to at any time
    int64_t patience_ns;    // after so long; negative: never
};

// Runs task(context, i, worker) for every i from `first` to `count`, the caller being worker 0, and returns
// when all are done: `count`. With a `recall` it may return earlier: those under way are finished, each
// thread has done one at least, and what it returns is the first that nobody has begun. At most `workers`
// threads take part. A second caller at the same time waits for the first.
int64_t run_tasks(int64_t first, int64_t count, int workers, Task task, void* context, const Recall* recall);

// False when the system gives no more threads; the pool then has as many as it got.
bool set_thread_count(int count);
int thread_count();

}  // namespace splatscope
