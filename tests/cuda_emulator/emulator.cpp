// Runs blocks one after the other, and their lanes as contexts that take turns on one thread.
#include "emulator.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "contexts.h"

namespace splatscope {
namespace emulator {

Place place;

namespace {

constexpr int warp_size = 32;
constexpr std::int64_t largest_grid = 0x7fffffff;
constexpr std::int64_t largest_shared = 64 * 1024;  // of the oldest architecture, with opt-in
constexpr std::uint32_t poison_word = 0xffffdeadu;  // a NaN, and no likely count

enum class State { ready, waiting, ended };

struct Lane {
    void* stack_pointer;
    State state;
    Collective collective;
    unsigned mask;
    std::uint64_t value;
    int argument;
    Site site;
};

Launch current;
Lane lanes[largest_block];
void* scheduler;
std::int64_t block_serial = 0;  // over all launches
std::int64_t static_shared_bytes;
bool failed;
char message[1024];
alignas(16) unsigned char dynamic_bytes[largest_shared];

const char* name_of(Collective collective) {
    static const char* const names[] = {"nothing",     "sync_block", "sync_block_count", "sync_warp",
                                        "ballot",      "any_lane",   "all_lanes_hold",   "shuffle",
                                        "shuffle_xor", "shuffle_up"};
    return names[static_cast<int>(collective)];
}

bool is_of_block(Collective collective) {
    return collective == Collective::sync_block || collective == Collective::sync_block_count;
}

const char* file_name(const char* path) {
    const char* slash = std::strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Keeps the first fault only: what follows comes from it.
__attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
    if (failed) return;
    failed = true;
    const int length =
        std::snprintf(message, sizeof message, "kernel %s (%s)", current.kernel, file_name(current.file));
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(message + length, sizeof message - length, format, arguments);
    va_end(arguments);
}

struct Text {
    char characters[256];
};

Text place_of(int thread) {
    Text text;
    std::snprintf(text.characters, sizeof text.characters, ", block %lld, warp %d, lane %d",
                  static_cast<long long>(place.block), thread / warp_size, thread % warp_size);
    return text;
}

// What a lane is about, as the end of a sentence.
Text doing(const Lane& lane) {
    Text text;
    if (lane.state == State::ended) {
        std::snprintf(text.characters, sizeof text.characters, "has ended");
    } else if (is_of_block(lane.collective)) {
        std::snprintf(text.characters, sizeof text.characters, "is at %s (%s:%d)", name_of(lane.collective),
                      file_name(lane.site.file), lane.site.line);
    } else {
        std::snprintf(text.characters, sizeof text.characters, "is at %s (%s:%d) with mask 0x%08x",
                      name_of(lane.collective), file_name(lane.site.file), lane.site.line, lane.mask);
    }
    return text;
}

// xorshift64*, seeded through a multiplication that spreads small seeds.
std::uint64_t random_state;
int random_below(std::size_t limit) {
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return static_cast<int>((random_state * 0x2545f4914f6cdd1dull >> 33) % limit);
}

template <typename Number>
void reorder(Number* numbers, std::size_t count) {
    if (current.order_mode == 0) return;
    for (std::size_t i = count; i > 1; --i) std::swap(numbers[i - 1], numbers[random_below(i)]);
}

void poison(void* at, std::size_t bytes) {
    auto* target = static_cast<unsigned char*>(at);
    for (std::size_t i = 0; i < bytes; i += sizeof poison_word) {
        std::memcpy(target + i, &poison_word, std::min(sizeof poison_word, bytes - i));
    }
}

// Lanes that run one after the other before the scheduler looks again, and how many have had their turn.
int turns[warp_size];
int turn_count;
int turn;

// Gives way to the next lane in turn, behind the last (or a fault) to the scheduler.
void give_way() {
    Lane& lane = lanes[place.thread];
    if (++turn < turn_count && !failed) {
        place.thread = turns[turn];
        splatscope_switch_context(&lane.stack_pointer, lanes[place.thread].stack_pointer);
    } else {
        splatscope_switch_context(&lane.stack_pointer, scheduler);
    }
}

// Where every lane begins; it never returns.
void lane_main() {
    current.body(current.params);
    lanes[place.thread].state = State::ended;
    give_way();
    __builtin_unreachable();
}

void prepare(int thread) {
    lanes[thread] = {};
    lanes[thread].stack_pointer = new_context(thread, &lane_main);
}

bool meets(const Lane& one, const Lane& other) {
    return other.state == State::waiting && one.collective == other.collective && one.mask == other.mask &&
           one.site.line == other.site.line &&
           (one.site.file == other.site.file || std::strcmp(one.site.file, other.site.file) == 0);
}

// The lane of the warp that `lane` reads by a shuffle; itself where there is none.
int source_of(const Lane& lane, int own) {
    int source = own;
    if (lane.collective == Collective::shuffle) return lane.argument & (warp_size - 1);
    if (lane.collective == Collective::shuffle_xor) source = own ^ lane.argument;
    if (lane.collective == Collective::shuffle_up) source = own - lane.argument;
    return source < 0 ? own : source;
}

// The results of one warp collective, all of whose lanes have come.
void resolve(int first_thread, unsigned mask) {
    Lane* warp = lanes + first_thread;
    const Collective collective = warp[__builtin_ctz(mask)].collective;
    unsigned holds = 0;
    std::uint64_t values[warp_size];
    for (int i = 0; i < warp_size; ++i) {
        values[i] = warp[i].value;
        if ((mask >> i & 1) && warp[i].value) holds |= 1u << i;
    }
    for (int i = 0; i < warp_size; ++i) {
        if (!(mask >> i & 1)) continue;
        Lane& lane = warp[i];
        lane.state = State::ready;
        switch (collective) {
            case Collective::ballot:
                lane.value = holds;
                break;
            case Collective::any_lane:
                lane.value = holds != 0;
                break;
            case Collective::all_lanes_hold:
                lane.value = holds == mask;
                break;
            case Collective::sync_warp:
                break;
            default:
                const int source = source_of(lane, i);
                if (!(mask >> source & 1)) {
                    fail("%s: %s (%s:%d) with mask 0x%08x reads lane %d, which is not in the mask",
                         place_of(first_thread + i).characters, name_of(collective),
                         file_name(lane.site.file), lane.site.line, mask, source);
                    return;
                }
                lane.value = values[source];
        }
    }
}

void release_warp(int first_thread) {
    for (int i = 0; i < warp_size; ++i) {
        const Lane& lane = lanes[first_thread + i];
        if (lane.state != State::waiting || is_of_block(lane.collective)) continue;
        bool complete = true;
        for (int j = 0; j < warp_size && complete; ++j) {
            if (lane.mask >> j & 1) complete = meets(lane, lanes[first_thread + j]);
        }
        if (complete) resolve(first_thread, lane.mask);
    }
}

bool release_block() {
    const Lane& first = lanes[0];
    if (first.state != State::waiting || !is_of_block(first.collective)) return false;
    std::uint64_t count = 0;
    for (int i = 0; i < current.block; ++i) {
        if (!meets(first, lanes[i])) return false;
        count += lanes[i].value;
    }
    for (int i = 0; i < current.block; ++i) {
        lanes[i].state = State::ready;
        lanes[i].value = count;
    }
    return true;
}

// Nothing can go on: says who waits for whom, warp collectives first, since barriers wait for them.
void explain_dead_lock() {
    for (const bool of_block : {false, true}) {
        for (int i = 0; i < current.block; ++i) {
            const Lane& lane = lanes[i];
            if (lane.state != State::waiting || is_of_block(lane.collective) != of_block) continue;
            const int first = of_block ? 0 : i / warp_size * warp_size;
            const int last = of_block ? current.block : first + warp_size;
            for (int j = first; j < last; ++j) {
                if (!of_block && !(lane.mask >> (j - first) & 1)) continue;
                if (meets(lane, lanes[j])) continue;
                fail("%s: dead-lock; it %s and waits for warp %d, lane %d, which %s", place_of(i).characters,
                     doing(lane).characters, j / warp_size, j % warp_size, doing(lanes[j]).characters);
                return;
            }
        }
    }
}

// Runs each lane of the warp that can; whether any could.
bool run_warp(int warp) {
    turn_count = 0;
    for (int thread = warp * warp_size; thread < (warp + 1) * warp_size; ++thread) {
        if (lanes[thread].state == State::ready) turns[turn_count++] = thread;
    }
    if (turn_count == 0) return false;
    reorder(turns, turn_count);
    turn = 0;
    place.thread = turns[0];
    splatscope_switch_context(&scheduler, lanes[turns[0]].stack_pointer);
    if (!failed) release_warp(warp * warp_size);
    return !failed;
}

// In natural order a warp goes as far as it can; in shuffled order it gives way after each phase.
bool run_warps(std::vector<int>& warps) {
    bool ran = false;
    reorder(warps.data(), warps.size());
    for (const int warp : warps) {
        while (!failed && run_warp(warp)) {
            ran = true;
            if (current.order_mode != 0) break;
        }
    }
    return ran;
}

void run_block(std::int64_t block) {
    place.block = block;
    ++block_serial;
    static_shared_bytes = 0;
    poison(dynamic_bytes, static_cast<std::size_t>(current.shared_bytes));
    for (int i = 0; i < current.block; ++i) prepare(i);
    std::vector<int> warps(current.block / warp_size);
    std::iota(warps.begin(), warps.end(), 0);
    while (!failed && (run_warps(warps) || release_block())) {
    }
    if (!failed) explain_dead_lock();
}

void check(const Launch& given) {
    if (given.grid < 1 || given.grid > largest_grid) {
        fail(": a grid of %lld blocks; expected 1 to 2^31 - 1", static_cast<long long>(given.grid));
    }
    if (given.block < 1 || given.block > given.max_threads || given.block % warp_size != 0) {
        fail(": blocks of %d threads; expected a multiple of 32 up to %d", given.block, given.max_threads);
    }
    if (given.shared_bytes < 0 || given.shared_bytes > largest_shared) {
        fail(": %lld bytes of dynamic shared memory; expected 0 to %lld",
             static_cast<long long>(given.shared_bytes), static_cast<long long>(largest_shared));
    }
    if (!have_stacks()) fail(": the system gave no memory for the lanes' stacks");
}

}  // namespace

std::uint64_t meet(Collective collective, unsigned mask, std::uint64_t value, int argument, Site site) {
    Lane& lane = lanes[place.thread];
    lane.state = State::waiting;
    lane.collective = collective;
    lane.mask = mask;
    lane.value = value;
    lane.argument = argument;
    lane.site = site;
    if (!is_of_block(collective) && !(mask >> (place.thread % warp_size) & 1)) {
        fail("%s: it %s, which leaves itself out", place_of(place.thread).characters, doing(lane).characters);
    }
    if (argument < 0) {
        fail("%s: it %s and asks for lane or distance %d", place_of(place.thread).characters,
             doing(lane).characters, argument);
    }
    give_way();
    return lane.value;
}

void begin_shared_array(void* array, std::size_t bytes, std::int64_t& of_block) {
    if (of_block == block_serial) return;
    of_block = block_serial;
    static_shared_bytes += static_cast<std::int64_t>(bytes);
    poison(array, bytes);
    if (static_shared_bytes + current.shared_bytes > largest_shared) {
        fail(": %lld bytes of shared memory; expected at most %lld",
             static_cast<long long>(static_shared_bytes + current.shared_bytes),
             static_cast<long long>(largest_shared));
        give_way();
    }
}

unsigned char* dynamic_shared() {
    return dynamic_bytes;
}

const char* launch(const Launch& given) {
    current = given;
    failed = false;
    check(given);
    if (failed) return message;
    random_state = (given.seed + 1) * 0x9e3779b97f4a7c15ull | 1;
    place.block_size = given.block;
    place.block_count = given.grid;
    std::vector<std::int64_t> blocks(static_cast<std::size_t>(given.grid));
    std::iota(blocks.begin(), blocks.end(), 0);
    reorder(blocks.data(), blocks.size());
    for (const std::int64_t block : blocks) {
        run_block(block);
        if (failed) return message;
    }
    return nullptr;
}

}  // namespace emulator
}  // namespace splatscope

#ifdef SPLATSCOPE_COVERAGE
extern "C" void __gcov_dump();
extern "C" void __gcov_reset();
// Writes what was counted so far, to be read while the process goes on.
extern "C" void emulator_write_counts() {
    __gcov_dump();
    __gcov_reset();
}
#endif
