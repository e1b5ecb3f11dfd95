#include "allocator/stacks/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "allocator/base/bits.h"
#include "allocator/base/system_call.h"
#include "allocator/platform/auxiliary_vector.h"
#include "allocator/platform/errno_guard.h"
#include "allocator/platform/memory_reader.h"
#include "allocator/platform/proc_reader.h"

namespace hakmem {

namespace {

// Not _dl_find_object(): a reference to it, weak or not, makes the library
// refuse to be loaded by a libc older than 2.35. Not dl_iterate_phdr(): it
// takes the loader's lock, whose holder may be waiting in malloc.

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Dynamic = ElfW(Dyn);
using Note = ElfW(Nhdr);

constexpr unsigned kMaxModules = 4096;
constexpr unsigned kMaxSegments = 16;
constexpr unsigned kMaxDynamicEntries = 256;
constexpr unsigned kMaxNotes = 16;
constexpr std::size_t kMaxBuildIdBytes = 20;

// A loaded ELF file.
struct Image {
  std::uintptr_t base = 0;
  unsigned count = 0;
  Segment segments[kMaxSegments];
};

bool ReadSegments(MemoryReader& memory, std::uintptr_t address, unsigned count,
                  Image& image) {
  image.count = count < kMaxSegments ? count : kMaxSegments;
  return memory.Read(address, image.segments, image.count * sizeof(Segment));
}

// The program, whose segments the kernel told the process.
bool ReadProgram(MemoryReader& memory, Image& image) {
  const std::uintptr_t segments = AuxiliaryValue(AT_PHDR);
  const unsigned long count = AuxiliaryValue(AT_PHNUM);
  if (segments == 0 ||
      !ReadSegments(memory, segments, static_cast<unsigned>(count), image)) {
    return false;
  }
  // Without this segment the program is not position-independent.
  image.base = 0;
  for (unsigned i = 0; i < image.count; ++i) {
    if (image.segments[i].p_type == PT_PHDR) {
      image.base = segments - image.segments[i].p_vaddr;
    }
  }
  return true;
}

// A shared library; its addresses begin at 0, and its header is there.
bool ReadLibrary(MemoryReader& memory, std::uintptr_t base, Image& image) {
  Header header;
  if (!memory.Read(base, &header, sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_phentsize != sizeof(Segment)) {
    return false;
  }
  image.base = base;
  return ReadSegments(memory, base + header.e_phoff, header.e_phnum, image);
}

ModuleRange RangeOf(const Image& image) {
  return RangeOfSegments(image.base, image.segments, image.count);
}

// Null: the address is in none.
const Segment* SegmentAt(const Image& image, std::uintptr_t address) {
  for (unsigned i = 0; i < image.count; ++i) {
    const Segment& segment = image.segments[i];
    if (segment.p_type == PT_LOAD &&
        address - image.base - segment.p_vaddr < segment.p_memsz) {
      return &segment;
    }
  }
  return nullptr;
}

// The kernel maps whole pages.
void SetSegment(const Image& image, std::uintptr_t address, ModuleOf& module) {
  const Segment& segment = *SegmentAt(image, address);
  const std::uintptr_t begin = image.base + segment.p_vaddr;
  const std::uintptr_t before = begin % kSmallestPageBytes;
  module.segment_begin = begin - before;
  module.segment_end = RoundUp(begin + segment.p_memsz, kSmallestPageBytes);
  module.segment_offset = segment.p_offset - before;
}

void PrintHex(const unsigned char* bytes, std::size_t count, char* to) {
  for (std::size_t i = 0; i < count; ++i) {
    *to++ = "0123456789abcdef"[bytes[i] >> 4];
    *to++ = "0123456789abcdef"[bytes[i] & 15];
  }
  *to = '\0';
}

bool ReadBuildIdFrom(MemoryReader& memory, const Image& image,
                     const Segment& segment, char* build_id) {
  std::uintptr_t at = image.base + segment.p_vaddr;
  const std::uintptr_t end = at + segment.p_memsz;
  const std::size_t alignment = segment.p_align == 8 ? 8 : 4;
  for (unsigned i = 0; i < kMaxNotes; ++i) {
    Note note;
    if (at + sizeof(note) > end || !memory.Read(at, &note, sizeof(note))) {
      return false;
    }
    const std::uintptr_t name = at + sizeof(note);
    const std::uintptr_t bytes =
        name + RoundUp<std::size_t>(note.n_namesz, alignment);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
        note.n_descsz <= kMaxBuildIdBytes) {
      unsigned char id[kMaxBuildIdBytes];
      if (!memory.Read(bytes, id, note.n_descsz)) return false;
      PrintHex(id, note.n_descsz, build_id);
      return true;
    }
    at = bytes + RoundUp<std::size_t>(note.n_descsz, alignment);
  }
  return false;
}

void ReadBuildId(MemoryReader& memory, const Image& image, ModuleOf& module) {
  module.build_id[0] = '\0';
  for (unsigned i = 0; i < image.count; ++i) {
    if (image.segments[i].p_type == PT_NOTE &&
        ReadBuildIdFrom(memory, image, image.segments[i], module.build_id)) {
      return;
    }
  }
}

// Whether the loader was started as a command, and the program by it: then what
// the kernel takes for the program is the loader.
bool IsStartedByLoader(const Image& program) {
  bool needs_loader = false;
  for (unsigned i = 0; i < program.count; ++i) {
    needs_loader = needs_loader || program.segments[i].p_type == PT_INTERP;
  }
  return needs_loader && AuxiliaryValue(AT_BASE) == 0;
}

// The path behind the mapping that begins there; "" if there is none.
void ReadMappedPath(std::uintptr_t begin, ModuleOf& module) {
  module.path[0] = '\0';
  LineReader maps(ProcReader(), "/proc/self/maps");
  std::string_view line;
  while (maps.Next(line)) {
    if (TakeHex(line) != begin) continue;
    line.remove_prefix(std::min(line.find('/'), line.size()));
    module.path[line.copy(module.path, sizeof(module.path) - 1)] = '\0';
    return;
  }
}

void ReadProgramPath(const Image& image, ModuleOf& module) {
  if (IsStartedByLoader(image)) return ReadMappedPath(module.begin, module);
  const ErrnoGuard guard;
  const auto read = [&](const char* link) {
    return SystemCall(SYS_readlinkat, AT_FDCWD, link, module.path,
                      sizeof(module.path) - 1);
  };
  long length = read("/proc/self/exe");
  // The first thread may have ended (platform/proc_reader.h).
  if (length < 0) length = read("/proc/thread-self/exe");
  module.path[length < 0 ? 0 : length] = '\0';
}

// Where the image's dynamic section lies; 0: it has none.
std::uintptr_t DynamicOf(const Image& image) {
  for (unsigned i = 0; i < image.count; ++i) {
    const Segment& segment = image.segments[i];
    if (segment.p_type == PT_DYNAMIC) return image.base + segment.p_vaddr;
  }
  return 0;
}

// Written by whoever is first, always with the same value; read by all.
constinit std::atomic<std::uintptr_t> g_loader_list{0};

// Where the loader keeps its list, for debuggers; 0 in a static program.
std::uintptr_t LoaderList(MemoryReader& memory, const Image& program) {
  std::uintptr_t list = g_loader_list.load(std::memory_order_relaxed);
  if (list != 0) return list;
  const std::uintptr_t entries = DynamicOf(program);
  for (unsigned i = 0; entries != 0 && i < kMaxDynamicEntries; ++i) {
    Dynamic entry;
    if (!memory.Read(entries + i * sizeof(entry), &entry, sizeof(entry)) ||
        entry.d_tag == DT_NULL) {
      return 0;
    }
    if (entry.d_tag == DT_DEBUG) {
      list = entry.d_un.d_ptr;
      g_loader_list.store(list, std::memory_order_relaxed);
      return list;
    }
  }
  return 0;
}

bool ReadEntry(MemoryReader& memory, const link_map* entry, link_map& map) {
  return entry != nullptr &&
         memory.Read(reinterpret_cast<std::uintptr_t>(entry), &map,
                     sizeof(map));
}

// Whether `visit` is true of an entry of the loader's list; it is called until
// then, for all but the first, which is the program's.
template <typename Visit>
bool AnyLibrary(MemoryReader& memory, std::uintptr_t list, const Visit& visit) {
  r_debug debug;
  link_map map = {};
  if (list == 0 || !memory.Read(list, &debug, sizeof(debug)) ||
      !ReadEntry(memory, debug.r_map, map)) {
    return false;
  }
  for (unsigned i = 1; i < kMaxModules && ReadEntry(memory, map.l_next, map);
       ++i) {
    if (visit(map)) return true;
  }
  return false;
}

// The library that begins closest before `address`: if any holds it, this one
// does.
bool FindNearest(MemoryReader& memory, std::uintptr_t list,
                 std::uintptr_t address, link_map& nearest) {
  nearest.l_addr = 0;
  AnyLibrary(memory, list, [&](const link_map& map) {
    if (map.l_addr <= address && map.l_addr > nearest.l_addr) nearest = map;
    return false;
  });
  return nearest.l_addr != 0;
}

// The image around `address`. `name`: where the loader keeps its path; 0 for
// the program.
bool FindImage(MemoryReader& memory, std::uintptr_t address, Image& image,
               std::uintptr_t& name) {
  name = 0;
  if (!ReadProgram(memory, image)) return false;
  if (SegmentAt(image, address) != nullptr) return true;
  link_map map;
  if (!FindNearest(memory, LoaderList(memory, image), address, map) ||
      !ReadLibrary(memory, map.l_addr, image) ||
      SegmentAt(image, address) == nullptr) {
    return false;
  }
  name = reinterpret_cast<std::uintptr_t>(map.l_name);
  return true;
}

}  // namespace

ModuleRange RangeOfSegments(std::uintptr_t base, const Segment* segments,
                            unsigned count) {
  ModuleRange range = {};
  range.base = base;
  range.begin = UINTPTR_MAX;
  for (unsigned i = 0; i < count; ++i) {
    const Segment& segment = segments[i];
    const std::uintptr_t begin = base + segment.p_vaddr;
    const std::uintptr_t end = begin + segment.p_memsz;
    if (segment.p_type == PT_GNU_EH_FRAME) range.unwind_table = begin;
    if (segment.p_type != PT_LOAD) continue;
    if (begin < range.begin) range.begin = begin;
    if (end > range.end) range.end = end;
  }
  for (unsigned i = 0; i < count; ++i) {
    const Segment& segment = segments[i];
    const std::uintptr_t begin = base + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_R) != 0 &&
        range.unwind_table - begin < segment.p_filesz) {
      range.table_begin = begin;
      range.table_end = RoundUp(begin + segment.p_filesz, kSmallestPageBytes);
    }
  }
  return range;
}

bool FindModule(std::uintptr_t address, ModuleOf& module) {
  MemoryReader memory;
  Image image;
  std::uintptr_t name = 0;
  if (!FindImage(memory, address, image, name)) return false;
  static_cast<ModuleRange&>(module) = RangeOf(image);
  SetSegment(image, address, module);
  ReadBuildId(memory, image, module);
  if (name == 0) {
    ReadProgramPath(image, module);
  } else if (!memory.ReadText(name, module.path, sizeof(module.path))) {
    module.path[0] = '\0';
  }
  return true;
}

ModuleRange ReadModuleRange(MemoryReader& memory, std::uintptr_t base) {
  Image image;
  return ReadLibrary(memory, base, image) ? RangeOf(image) : ModuleRange{};
}

bool HasModule(bool (*is_wanted)(MemoryReader& memory,
                                 const LoadedModule& module, void* context),
               void* context) {
  MemoryReader memory;
  Image image;
  if (!ReadProgram(memory, image)) return false;
  const auto is_wanted_image = [&] {
    return is_wanted(memory, {RangeOf(image), DynamicOf(image)}, context);
  };
  const std::uintptr_t list = LoaderList(memory, image);
  return is_wanted_image() ||
         AnyLibrary(memory, list, [&](const link_map& map) {
           return ReadLibrary(memory, map.l_addr, image) && is_wanted_image();
         });
}

bool IsProgram(const ModuleOf& module) {
  const std::uintptr_t entry = AuxiliaryValue(AT_ENTRY);
  return entry >= module.begin && entry < module.end;
}

}  // namespace hakmem
