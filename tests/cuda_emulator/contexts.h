// Contexts of lanes: a stack each, and a switch between them that calls no system.
#pragma once

// Keeps the callee-saved registers on the stack, leaves its pointer at `save` and goes on at `load`.
extern "C" void splatscope_switch_context(void** save, void* load);

namespace splatscope {
namespace emulator {

constexpr int largest_block = 1024;  // so many stacks

// Whether the system gives memory for the stacks.
bool have_stacks();

// The stack pointer of a context that begins with `begin`, which never returns, on the stack of `thread`.
void* new_context(int thread, void (*begin)());

}  // namespace emulator
}  // namespace splatscope
