// Extensions of the language that hakmem asks compilers for.
//
// Owns: nothing. Called by: every layer. Thread-safety: not applicable.
#ifndef HAKMEM_ALLOCATOR_BASE_COMPILER_H_
#define HAKMEM_ALLOCATOR_BASE_COMPILER_H_

// A hot function: part of its caller's code, whatever the inliner thinks.
#define HAK_ALWAYS_INLINE inline __attribute__((always_inline))
// A function that begins a line of the processor's cache: its time shall not
// depend on what is linked before it.
#define HAK_LINE_ALIGNED __attribute__((aligned(64)))
// A cold function: out of line and away from hot code.
#define HAK_COLD __attribute__((noinline, cold))
// Out of line, but not rare.
#define HAK_NOINLINE __attribute__((noinline))
// Nothing here is new to a fuzzer, and no thread loses its turn here.
#if defined(__clang__)
#define HAK_NO_COVERAGE __attribute__((no_sanitize("coverage")))
#else
#define HAK_NO_COVERAGE
#endif
// Where control comes by after a call, that call is not made by the jump that
// compilers make of a last one: the frame of this function is there meanwhile.
#define HAK_COMES_BY() __asm__ volatile("")
// A symbol of the shared library.
#define HAK_EXPORT __attribute__((visibility("default")))
// The same. That of another hakmem in the process does not take its place.
#define HAK_EXPORT_OWN __attribute__((visibility("protected")))
// A symbol that may be absent at run time; test its address before use.
#define HAK_WEAK __attribute__((weak))
// A variable that each fork's child writes or looks at: all of them lie side by
// side, as the child takes a page fault for each page. Not for inline
// variables, which gcc does not put beside others.
#define HAK_AT_FORK __attribute__((section(".hakmem.fork")))
// Thread-local storage reached without a call. Allowed because the library is
// either preloaded or linked in; its few bytes fit glibc's surplus when it is
// loaded by dlopen.
#define HAK_TLS_INITIAL_EXEC __attribute__((tls_model("initial-exec")))

// The signal of __builtin_trap(), as <csignal> has it.
#if defined(__x86_64__)
#define HAK_TRAP_SIGNAL SIGILL
#else
#define HAK_TRAP_SIGNAL SIGTRAP
#endif

// The value of a macro as a string literal.
#define HAK_AS_TEXT(value) HAK_AS_TEXT_(value)
#define HAK_AS_TEXT_(value) #value

#endif  // HAKMEM_ALLOCATOR_BASE_COMPILER_H_
