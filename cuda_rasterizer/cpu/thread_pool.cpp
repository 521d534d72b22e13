#include "thread_pool.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "denormals.h"

namespace splatscope {
namespace {

// How often, and then how long, a thread looks for what it waits for before it sleeps.
constexpr int looks = 300;
constexpr std::chrono::microseconds patience_awake{150};

inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Waits awake until `is_there()`; false when that takes too long. What it waits for may be ready to run, but
// on this very core, so it soon offers that to others at every look.
template <typename Found>
bool wait_awake(const Found& is_there) {
    for (int spin = 0; spin < looks; ++spin) {
        if (is_there()) return true;
        pause_briefly();
    }
    const auto end = std::chrono::steady_clock::now() + patience_awake;
    while (std::chrono::steady_clock::now() < end) {
        if (is_there()) return true;
        std::this_thread::yield();
    }
    return false;
}

// A recall that has begun to count.
class Watch {
  public:
    explicit Watch(const Recall* recall) : recall_(recall) {
        if (has_end()) end_ = Clock::now() + std::chrono::nanoseconds(recall->patience_ns);
    }

    bool is_over() const {
        if (!recall_) return false;
        return __atomic_load_n(recall_->called, __ATOMIC_RELAXED) != 0 || (has_end() && Clock::now() >= end_);
    }

  private:
    using Clock = std::chrono::steady_clock;

    bool has_end() const { return recall_ && recall_->patience_ns >= 0; }

    const Recall* recall_;
    Clock::time_point end_{};
};

// The first task of a share that nobody has begun, in a cache line of its own.
struct alignas(64) NextTask {
    std::atomic<int64_t> task{0};
};

class Pool {
  public:
    bool resize(int count) {
        std::lock_guard<std::mutex> lock(call_mutex_);
        stop_workers();
        for (int worker = 1; worker < count; ++worker) {
            try {
                threads_.emplace_back(&Pool::work, this, worker, generation_.load());
            } catch (const std::system_error&) {
                size_.store(int(threads_.size()) + 1);
                return false;
            }
        }
        size_.store(count);
        return true;
    }

    int size() const { return size_.load(); }

    bool run(int64_t count, int workers, Task task, void* context, const Recall* recall, int64_t* begun) {
        std::lock_guard<std::mutex> lock(call_mutex_);
        const Watch watch(recall);
        task_ = task;
        context_ = context;
        count_ = count;
        workers_ = workers;
        watch_ = &watch;
        int64_t left = count;
        for (int share = 0; share < task_shares; ++share) {
            next_[share].task.store(share_begin(count, share) + begun[share], std::memory_order_relaxed);
            left -= begun[share];
        }
        const int helpers = int(threads_.size());
        if (helpers == 0 || workers <= 1 || left <= 1) {
            take_tasks(0);
        } else {
            busy_.store(helpers, std::memory_order_relaxed);
            announce();
            take_tasks(0);
            wait_for_workers();
        }
        bool is_done = true;
        for (int share = 0; share < task_shares; ++share) {
            const int64_t begin = share_begin(count, share), end = share_begin(count, share + 1);
            const int64_t next = std::min(end, next_[share].task.load(std::memory_order_relaxed));
            begun[share] = next - begin;
            is_done = is_done && next == end;
        }
        return is_done;
    }

  private:
    void announce() {
        {
            // The lock closes the gap between a worker's last look and its sleep.
            std::lock_guard<std::mutex> lock(sleep_mutex_);
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
    }

    // Two workers go towards each other from the ends of what falls to them, then through what is left of the
    // others'.
    void take_tasks(int worker) {
        const int pair = worker & ~1, sharing = std::min(workers_, size_.load(std::memory_order_relaxed));
        const int begin = task_shares * pair / sharing;
        const int end = task_shares * std::min(pair + 2, sharing) / sharing;
        for (int i = 0; i < task_shares; ++i) {
            const int share = worker == pair ? begin + i : end - 1 - i + task_shares;
            if (!take_share(share % task_shares, worker)) return;
        }
    }

    // False when the caller wants to be back.
    bool take_share(int share, int worker) {
        const int64_t end = share_begin(count_, share + 1);
        std::atomic<int64_t>& next = next_[share].task;
        while (next.load(std::memory_order_relaxed) < end) {
            const int64_t index = next.fetch_add(1, std::memory_order_relaxed);
            if (index >= end) break;
            task_(context_, index, worker);
            if (watch_->is_over()) return false;
        }
        return true;
    }

    void wait_for_workers() {
        const auto is_done = [this] { return busy_.load(std::memory_order_acquire) == 0; };
        if (wait_awake(is_done)) return;
        std::unique_lock<std::mutex> lock(sleep_mutex_);
        done_.wait(lock, is_done);
    }

    void work(int worker, uint64_t seen) {
        flush_denormals();
        for (;;) {
            seen = wait_for_generation(seen);
            if (stopping_.load(std::memory_order_acquire)) return;
            if (worker < workers_) take_tasks(worker);
            if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                {
                    std::lock_guard<std::mutex> lock(sleep_mutex_);
                }
                done_.notify_one();
            }
        }
    }

    uint64_t wait_for_generation(uint64_t seen) {
        const auto is_there = [&] { return generation_.load(std::memory_order_acquire) != seen; };
        if (!wait_awake(is_there)) {
            std::unique_lock<std::mutex> lock(sleep_mutex_);
            wake_.wait(lock, is_there);
        }
        return generation_.load(std::memory_order_acquire);
    }

    void stop_workers() {
        stopping_.store(true, std::memory_order_release);
        announce();
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
        stopping_.store(false, std::memory_order_release);
    }

    std::mutex call_mutex_, sleep_mutex_;
    std::condition_variable wake_, done_;
    std::vector<std::thread> threads_;
    std::atomic<int> size_{1};
    std::atomic<uint64_t> generation_{0};
    std::atomic<bool> stopping_{false};
    std::atomic<int> busy_{0};
    NextTask next_[task_shares];
    Task task_ = nullptr;
    void* context_ = nullptr;
    int64_t count_ = 0;
    int workers_ = 1;
    const Watch* watch_ = nullptr;
};

std::mutex pool_mutex;

// Never destroyed: at exit its threads sleep, and joining them from a static destructor can dead-lock. A
// child of fork() has none of its parent's threads, so it begins with a pool of its own.
Pool& pool() {
    static Pool* current = nullptr;
    static pid_t owner = 0;
    std::lock_guard<std::mutex> lock(pool_mutex);
    if (!current || owner != getpid()) {
        current = new Pool;
        owner = getpid();
    }
    return *current;
}

}  // namespace

bool run_tasks(int64_t count, int workers, Task task, void* context, const Recall* recall, int64_t* begun) {
    return pool().run(count, workers, task, context, recall, begun);
}

bool set_thread_count(int count) {
    return pool().resize(count);
}

int thread_count() {
    return pool().size();
}

}  // namespace splatscope
