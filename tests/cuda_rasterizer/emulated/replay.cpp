// Runs kernels for a test on another machine: calls of the CPU library come through standard input with
// everything that their pointers reach, and go back through standard output as the kernels left it.
//
//   replay LIBRARY
//
// begins by telling, in words, the instruction set that the library chose, its layouts and its constants. A
// call without a name sets the number of threads. All numbers of a call, and the length of what is told, are
// 64 bit in the machine's own order, which is little-endian on both sides.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr size_t cache_line = 64;

[[noreturn]] void fail(const char* what, const char* which) {
    std::fprintf(stderr, "replay: %s %s\n", what, which);
    std::exit(1);
}

void* symbol(void* library, const std::string& name) {
    void* found = dlsym(library, name.c_str());
    if (!found) fail("the library has no", name.c_str());
    return found;
}

template <typename Function>
Function function(void* library, const char* name) {
    return reinterpret_cast<Function>(symbol(library, name));
}

// False at the end of the input.
bool read_bytes(void* to, size_t bytes) {
    const size_t got = std::fread(to, 1, bytes, stdin);
    if (got != bytes && got != 0) fail("a call ends", "too early");
    return got == bytes;
}

int64_t read_number() {
    int64_t number;
    if (!read_bytes(&number, sizeof number)) fail("a call ends", "too early");
    return number;
}

// Memory of the caller: it lies in a cache line here as it does there.
struct Region {
    uint64_t address;
    size_t bytes;
    std::vector<char> room;

    Region() : address(uint64_t(read_number())), bytes(size_t(read_number())), room(bytes + 2 * cache_line) {
        if (bytes && !read_bytes(begin(), bytes)) fail("a call ends", "too early");
    }
    char* begin() {
        const size_t wanted = address % cache_line, have = uintptr_t(room.data()) % cache_line;
        return room.data() + (wanted + cache_line - have) % cache_line;
    }
    bool holds(uint64_t pointer) const { return pointer >= address && pointer < address + bytes; }
};

// The kernel named in `name` once, with its structure's pointers turned to where their regions lie here.
void replay(void* library, const std::string& name) {
    const int64_t words = read_number() / int64_t(sizeof(uint64_t));
    std::vector<uint64_t> structure(words);
    if (!read_bytes(structure.data(), words * sizeof(uint64_t))) fail("a call ends", "too early");
    const int64_t region_count = read_number();
    std::vector<Region> regions(region_count);
    for (int64_t left = read_number(); left > 0; --left) {
        uint64_t& pointer = structure[size_t(read_number()) / sizeof(uint64_t)];
        Region* home = nullptr;
        for (Region& region : regions)
            if (region.holds(pointer)) home = &region;
        if (!home) fail("a pointer leads nowhere in", name.c_str());
        pointer = uintptr_t(home->begin()) + (pointer - home->address);
    }
    reinterpret_cast<void (*)(const void*)>(symbol(library, "splatscope_" + name))(structure.data());
    for (Region& region : regions) std::fwrite(region.begin(), 1, region.bytes, stdout);
    std::fflush(stdout);
}

void tell_layouts(void* library) {
    const auto layout = function<const char* (*)(int, const char**, int64_t*)>(library, "splatscope_layout");
    const auto constant = function<const char* (*)(int, int64_t*)>(library, "splatscope_constant");
    std::string told = function<const char* (*)()>(library, "splatscope_instruction_set")();
    const char* field;
    int64_t value;
    for (int row = 0; const char* structure = layout(row, &field, &value); ++row)
        told += '\n' + std::string(structure) + '.' + field + ' ' + std::to_string(value);
    for (int row = 0; const char* name = constant(row, &value); ++row)
        told += '\n' + std::string(name) + ' ' + std::to_string(value);
    const uint64_t length = told.size();
    std::fwrite(&length, sizeof length, 1, stdout);
    std::fwrite(told.data(), 1, told.size(), stdout);
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) fail("expected one argument,", "the library");
    void* library = dlopen(arguments[1], RTLD_NOW);
    if (!library) fail("cannot load:", dlerror());
    const auto set_threads = function<int (*)(int)>(library, "splatscope_set_threads");
    tell_layouts(library);
    int64_t length;
    while (read_bytes(&length, sizeof length)) {
        std::string name(size_t(length), '\0');
        if (name.empty()) {
            const int64_t threads = read_number();
            if (!set_threads(int(threads)))
                fail("too few threads to be had for", std::to_string(threads).c_str());
        } else {
            if (!read_bytes(&name[0], name.size())) fail("a call ends", "too early");
            replay(library, name);
        }
    }
}
