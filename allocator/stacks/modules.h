// Which program or shared library an address of code is in.
//
// Owns: the address of the loader's list, once found. Called by: the
// rooms that write of code. Thread-safety: any thread, signal handlers
// included; takes no lock, the loader's neither; nothing allocates; errno is
// left as it was. A library that is being loaded or unloaded at the time may be
// missed.
//
// Invariants:
//   MO1: reading the loader's list and the modules' headers never faults.
//   MO2: the work is bounded, whatever the list looks like.
#ifndef HAKMEM_ALLOCATOR_STACKS_MODULES_H_
#define HAKMEM_ALLOCATOR_STACKS_MODULES_H_

#include <link.h>

#include <cstdint>

namespace hakmem {

class MemoryReader;

// Where a module lies.
struct ModuleRange {
  // An address less this is its place in the ELF file's own address space.
  std::uintptr_t base;
  // [begin, end) holds all of the module, so that other addresses in it need
  // not be looked up.
  std::uintptr_t begin;
  std::uintptr_t end;
  // Its .eh_frame_hdr, which tells how to unwind its functions; 0: it has none.
  std::uintptr_t unwind_table;
  // The pages of the segment around that, which are mapped as long as the
  // module is; readable.
  std::uintptr_t table_begin;
  std::uintptr_t table_end;
};

struct ModuleOf : ModuleRange {
  // As the loader knows it; the program's own from /proc/self/exe, or
  // /proc/self/maps where the loader was started as a command. A path that is
  // too long is cut.
  char path[256];
  // In lower-case hexadecimal; empty when the module has none (or a longer one
  // than any linker makes).
  char build_id[41];
  // The mapping of the segment around the address, and its place in the file.
  std::uintptr_t segment_begin;
  std::uintptr_t segment_end;
  std::uint64_t segment_offset;
};

// False: `address` is in no module (code made at run time), or in one loaded by
// dlmopen.
bool FindModule(std::uintptr_t address, ModuleOf& module);

// Of the module with these segments; its build says where it lies from `base`.
ModuleRange RangeOfSegments(std::uintptr_t base, const ElfW(Phdr) * segments,
                            unsigned count);

// Of the library whose header is at `base`; empty: none can be read.
ModuleRange ReadModuleRange(MemoryReader& memory, std::uintptr_t base);

struct LoadedModule : ModuleRange {
  std::uintptr_t dynamic;  // its dynamic section; 0: it has none
};

// Whether `is_wanted` is true of a module; it is called until then, with
// `context`, for the program and each entry of the loader's list. The module's
// memory is to be read by the reader.
bool HasModule(bool (*is_wanted)(MemoryReader& memory,
                                 const LoadedModule& module, void* context),
               void* context);

// Whether it is the program itself, no shared library.
bool IsProgram(const ModuleOf& module);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_STACKS_MODULES_H_
