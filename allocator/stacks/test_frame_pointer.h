// A call while the register of the frame pointer holds data, as it does in code
// that is compiled without frame pointers.
//
// Owns: nothing. Called by: one source of a test, which defines the function by
// including this. Thread-safety: as the function that is called.
#ifndef HAKMEM_ALLOCATOR_STACKS_TEST_FRAME_POINTER_H_
#define HAKMEM_ALLOCATOR_STACKS_TEST_FRAME_POINTER_H_

#include <cstddef>
#include <cstdint>

// Returns what `function` does of `bytes`. No unwind table tells of it.
extern "C" void* CallWithFramePointer(std::size_t bytes, std::uintptr_t value,
                                      void* (*function)(std::size_t));

#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".type CallWithFramePointer, @function\n"
    "CallWithFramePointer:\n"
    "  push %rbp\n"
    "  mov %rsi, %rbp\n"
    "  call *%rdx\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size CallWithFramePointer, .-CallWithFramePointer\n");
#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".type CallWithFramePointer, %function\n"
    "CallWithFramePointer:\n"
    "  stp x29, x30, [sp, #-16]!\n"
    "  mov x29, x1\n"
    "  blr x2\n"
    "  ldp x29, x30, [sp], #16\n"
    "  ret\n"
    ".size CallWithFramePointer, .-CallWithFramePointer\n");
#endif

#endif  // HAKMEM_ALLOCATOR_STACKS_TEST_FRAME_POINTER_H_
