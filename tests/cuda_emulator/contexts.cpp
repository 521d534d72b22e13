#include "contexts.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
asm(R"(
.text
.globl splatscope_switch_context
.hidden splatscope_switch_context
.type splatscope_switch_context, @function
splatscope_switch_context:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size splatscope_switch_context, .-splatscope_switch_context
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl splatscope_switch_context
.hidden splatscope_switch_context
.type splatscope_switch_context, %function
splatscope_switch_context:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x2, sp
    str x2, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size splatscope_switch_context, .-splatscope_switch_context
)");
#else
#error "the emulator knows x86-64 and 64-bit Arm; another processor needs its own context switch"
#endif

namespace splatscope {
namespace emulator {
namespace {

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr std::size_t guard_bytes = 4096;

unsigned char* stacks() {
    static unsigned char* const all = [] {
        const std::size_t bytes = largest_block * stack_bytes;
        void* mapped =
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) return static_cast<unsigned char*>(nullptr);
        auto* at = static_cast<unsigned char*>(mapped);
        for (int i = 0; i < largest_block; ++i) mprotect(at + i * stack_bytes, guard_bytes, PROT_NONE);
        return at;
    }();
    return all;
}

}  // namespace

bool have_stacks() {
    return stacks() != nullptr;
}

void* new_context(int thread, void (*begin)()) {
    // Tops at different places within a page, lest all lanes share the same few cache lines.
    unsigned char* top = stacks() + (thread + 1) * stack_bytes - (thread % 61) * 64;
    void** frame = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
    constexpr int words = 8, return_word = 6;  // six registers, the return address, one for alignment
#else
    constexpr int words = 20, return_word = 11;
#endif
    frame -= words;
    std::memset(frame, 0, words * sizeof(void*));
    frame[return_word] = reinterpret_cast<void*>(begin);
    return frame;
}

}  // namespace emulator
}  // namespace splatscope
