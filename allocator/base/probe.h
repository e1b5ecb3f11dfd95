// Probes for tracers and debuggers: bpftrace, perf, SystemTap, gdb
// (docs/statistics.md).
//
// Owns: nothing. Called by: slow paths. Thread-safety: nothing is done.
//
// A probe is an instruction that does nothing, and a note in the library's file
// of where it lies and which registers have its arguments. Who attaches to it
// puts a breakpoint there. The notes are SystemTap's, version 3, as <sys/sdt.h>
// writes them; the probes' provider is hakmem.
//
// Where the linker drops what nobody refers to, .stapsdt.base must stay: by it
// readers know how far a file's addresses were moved. So the probe refers to it
// by a relocation that changes nothing.
#ifndef HAKMEM_ALLOCATOR_BASE_PROBE_H_
#define HAKMEM_ALLOCATOR_BASE_PROBE_H_

#include <cstdint>

namespace hakmem {

// All arguments are 8 bytes: numbers, addresses, or texts.
inline std::uint64_t ProbeArgument(std::uint64_t number) { return number; }
inline std::uint64_t ProbeArgument(const char* text) {
  return reinterpret_cast<std::uint64_t>(text);
}

}  // namespace hakmem

#if defined(__x86_64__)
#define HAK_PROBE_OPERAND "nr"
#elif defined(__aarch64__)
#define HAK_PROBE_OPERAND "r"
#endif

// HAK_PROBE2(name, a, b): the probe hakmem:name, with two arguments.
#if defined(HAK_PROBE_OPERAND)
#define HAK_PROBE_NOTE(name, arguments)                                   \
  "990: nop\n"                                                            \
  ".reloc 990b, BFD_RELOC_NONE, _.stapsdt.base\n"                         \
  ".pushsection .note.stapsdt,\"?\",\"note\"\n"                           \
  ".balign 4\n"                                                           \
  ".4byte 992f-991f, 994f-993f, 3\n"                                      \
  "991: .asciz \"stapsdt\"\n"                                             \
  "992: .balign 4\n"                                                      \
  "993: .8byte 990b, _.stapsdt.base, 0\n"                                 \
  ".asciz \"hakmem\"\n"                                                   \
  ".asciz \"" #name                                                       \
  "\"\n"                                                                  \
  ".asciz \"" arguments                                                   \
  "\"\n"                                                                  \
  "994: .balign 4\n"                                                      \
  ".popsection\n"                                                         \
  ".ifndef _.stapsdt.base\n"                                              \
  ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
  ".weak _.stapsdt.base\n"                                                \
  ".hidden _.stapsdt.base\n"                                              \
  "_.stapsdt.base: .space 1\n"                                            \
  ".size _.stapsdt.base, 1\n"                                             \
  ".popsection\n"                                                         \
  ".endif\n"
#define HAK_PROBE2(name, a, b)                                      \
  __asm__ volatile(HAK_PROBE_NOTE(name, "8@%0 8@%1")                \
                   :                                                \
                   : HAK_PROBE_OPERAND(::hakmem::ProbeArgument(a)), \
                     HAK_PROBE_OPERAND(::hakmem::ProbeArgument(b)))
#define HAK_PROBE3(name, a, b, c)                                   \
  __asm__ volatile(HAK_PROBE_NOTE(name, "8@%0 8@%1 8@%2")           \
                   :                                                \
                   : HAK_PROBE_OPERAND(::hakmem::ProbeArgument(a)), \
                     HAK_PROBE_OPERAND(::hakmem::ProbeArgument(b)), \
                     HAK_PROBE_OPERAND(::hakmem::ProbeArgument(c)))
#else
#define HAK_PROBE2(name, a, b) static_cast<void>(0)
#define HAK_PROBE3(name, a, b, c) static_cast<void>(0)
#endif

#endif  // HAKMEM_ALLOCATOR_BASE_PROBE_H_
