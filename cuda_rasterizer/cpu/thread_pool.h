// The pool that all kernels share: persistent threads that spin briefly, then sleep.
//
// Tasks are numbered and drawn from one counter, so whoever is free takes the next. Which worker runs a
// task must never show in a result.
#pragma once

#include <cstdint>

namespace splatscope {

using Task = void (*)(void* context, int64_t index, int worker);

// Runs task(context, i, worker) for every i below `count`, the caller being worker 0, and returns when all
// are done. At most `workers` threads take part. A second caller at the same time waits for the first.
void run_tasks(int64_t count, int workers, Task task, void* context);

// False when the system gives no more threads; the pool then has as many as it got.
bool set_thread_count(int count);
int thread_count();

}  // namespace splatscope
