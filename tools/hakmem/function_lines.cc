#include "tools/hakmem/function_lines.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/hakmem/debug_files.h"

namespace hakmem::tools {
namespace {

// A linker gives this place to the code that it has left out.
constexpr Dwarf_Addr kLeftOut = 1;
// A symbol within others is looked for among so many.
constexpr int kNestedSymbols = 64;
constexpr std::size_t kMostInlinedCalls = 256;
constexpr int kMostUnderscores = 8;

std::string TextOf(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute found;
  const char* const text =
      dwarf_formstring(dwarf_attr_integrate(die, attribute, &found));
  return text == nullptr ? "" : text;
}

std::uint64_t NumberOf(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Word number = 0;
  dwarf_formudata(dwarf_attr(die, attribute, &found), &number);
  return number;
}

bool IsMangled(std::string_view name) {
  return absl::StartsWith(name, "_Z") || absl::StartsWith(name, "_R");
}

// The symbol has the whole name where debug information has a part of it.
std::string NameOf(Dwarf_Die* function, std::string_view symbol) {
  for (const unsigned attribute :
       {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    const std::string name = Demangled(TextOf(function, attribute));
    if (!name.empty() && !IsMangled(name)) return name;
  }
  if (IsMangled(symbol)) return Demangled(std::string(symbol));
  return TextOf(function, DW_AT_name);
}

std::string PlaceOf(const char* file, std::uint64_t line, Dwarf_Die* unit) {
  if (file == nullptr || line == 0) return "";
  std::string folder = file[0] == '/' ? "" : TextOf(unit, DW_AT_comp_dir);
  if (!folder.empty()) folder += '/';
  return absl::StrCat(folder, file, ":", line);
}

// Where an inlined function was called.
std::string CallOf(Dwarf_Die* function, Dwarf_Die* unit) {
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  Dwarf_Die owner;
  if (dwarf_diecu(function, &owner, nullptr, nullptr) == nullptr ||
      dwarf_getsrcfiles(&owner, &files, &count) != 0) {
    return "";
  }
  return PlaceOf(dwarf_filesrc(files, NumberOf(function, DW_AT_call_file),
                               nullptr, nullptr),
                 NumberOf(function, DW_AT_call_line), unit);
}

bool HoldsFunctions(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
         tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
         tag == DW_TAG_module;
}

// Calls work(begin, end) for each part of the code.
template <typename Work>
void ForEachRange(Dwarf_Die* die, Work work) {
  Dwarf_Addr base = 0;
  Dwarf_Addr begin = 0;
  Dwarf_Addr end = 0;
  std::ptrdiff_t at = 0;
  while ((at = dwarf_ranges(die, at, &base, &begin, &end)) > 0) {
    if (begin > kLeftOut && begin < end) work(begin, end);
  }
}

// Calls work(child) for each, as long as that returns true.
template <typename Work>
void ForEachChild(Dwarf_Die* parent, Work work) {
  Dwarf_Die child;
  if (dwarf_child(parent, &child) != 0) return;
  while (work(&child) && dwarf_siblingof(&child, &child) == 0) {
  }
}

// The functions that were inlined at the address, the outer first.
void AddInlined(Dwarf_Die parent, Dwarf_Addr address,
                std::vector<Dwarf_Die>& functions) {
  for (bool deeper = true; deeper && functions.size() < kMostInlinedCalls;) {
    deeper = false;
    Dwarf_Die next = {};
    ForEachChild(&parent, [&](Dwarf_Die* child) {
      const int tag = dwarf_tag(child);
      const bool is_inlined = tag == DW_TAG_inlined_subroutine;
      if (!is_inlined && tag != DW_TAG_lexical_block &&
          tag != DW_TAG_try_block && tag != DW_TAG_catch_block) {
        return true;
      }
      if (dwarf_haspc(child, address) <= 0) return true;
      if (is_inlined) functions.push_back(*child);
      next = *child;
      deeper = true;
      return false;
    });
    parent = next;
  }
}

template <typename Function>
void AddFunctions(Dwarf_Die* parent, std::vector<Function>& functions) {
  ForEachChild(parent, [&](Dwarf_Die* child) {
    const int tag = dwarf_tag(child);
    if (tag == DW_TAG_subprogram) {
      ForEachRange(child, [&](Dwarf_Addr begin, Dwarf_Addr end) {
        functions.push_back({begin, end, *child});
      });
    } else if (HoldsFunctions(tag)) {
      AddFunctions(child, functions);
    }
    return true;
  });
}

int RankOf(const GElf_Sym& symbol, const char* name) {
  const int binding = GELF_ST_BIND(symbol.st_info);
  const int by_binding = binding == STB_GLOBAL ? 2 : binding == STB_WEAK;
  const int underscores = static_cast<int>(::strspn(name, "_"));
  return kMostUnderscores * by_binding -
         std::min(underscores, kMostUnderscores - 1);
}

Dwarf_Addr EndOfSection(Elf* elf, std::size_t index, Dwarf_Addr moved) {
  GElf_Shdr section;
  Elf_Scn* const found = elf_getscn(elf, index);
  if (found == nullptr || gelf_getshdr(found, &section) == nullptr) return 0;
  return section.sh_addr + section.sh_size + moved;
}

class ElfLines {
 public:
  // `folder`: where separate debug information is looked for first; "": none.
  ElfLines(const NamedFile& file, std::string folder)
      : path_(file.path()), folder_(std::move(folder)) {
    static const Dwfl_Callbacks kCallbacks = {
        .find_elf = nullptr,
        .find_debuginfo = FindDebugFile,
        .section_address = dwfl_offline_section_address,
        .debuginfo_path = nullptr};
    const int copy = ::dup(file.descriptor());
    dwfl_ = dwfl_begin(&kCallbacks);
    module_ = dwfl_report_offline(dwfl_, "module", path_.c_str(), copy);
    dwfl_report_end(dwfl_, nullptr, nullptr);
    if (module_ == nullptr) {
      ::close(copy);
      return;
    }
    void** user_data = nullptr;
    dwfl_module_info(module_, &user_data, nullptr, nullptr, nullptr, nullptr,
                     nullptr, nullptr);
    *user_data = this;
    dwfl_module_getelf(module_, &moved_);
    Dwarf* const dwarf = dwfl_module_getdwarf(module_, &debug_moved_);
    if (dwarf != nullptr) ReadUnits(dwarf);
  }

  ElfLines(const ElfLines&) = delete;
  ElfLines& operator=(const ElfLines&) = delete;

  ~ElfLines() { dwfl_end(dwfl_); }

  // Whether the file, or one beside it, has debug information.
  bool has_lines() const { return !units_.empty(); }
  // What is at an address, as the file says it; the innermost first.
  std::vector<SourceLine> At(std::uint64_t address) {
    if (module_ == nullptr) return {};
    const std::string_view symbol = SymbolAt(address + moved_);
    std::vector<SourceLine> lines =
        LinesAt(address + moved_ - debug_moved_, symbol);
    if (lines.empty() && !symbol.empty()) {
      lines.push_back({Demangled(std::string(symbol)), ""});
    }
    return lines;
  }

 private:
  struct Function {
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    Dwarf_Die die = {};
  };
  // A part of a unit's code.
  struct Unit {
    Dwarf_Addr end = 0;
    Dwarf_Die lines = {};
    Dwarf_Die functions = {};  // in another file, where a unit is split
  };
  struct Symbol {
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    bool has_size = false;
    int rank = 0;  // of several with one beginning the highest counts
    const char* name = nullptr;
  };

  static int FindDebugFile(Dwfl_Module* module, void** lines, const char* name,
                           Dwarf_Addr base, const char* path, const char* link,
                           GElf_Word checksum, char** found) {
    const auto* const self = static_cast<ElfLines*>(*lines);
    NamedFile file = link == nullptr ? NamedFile()
                                     : FileByLink({self->path_, self->folder_},
                                                  path, link, checksum);
    if (file.descriptor() >= 0) {
      *found = ::strdup(file.path().c_str());
      return file.Release();
    }
    const char* const servers = std::getenv("DEBUGINFOD_URLS");
    if (servers == nullptr || *servers == '\0') return -1;
    return dwfl_standard_find_debuginfo(module, lines, name, base, path,
                                        nullptr, 0, found);
  }

  // By the units' own word: .debug_aranges is an optional index, which clang
  // and rustc do not write.
  void ReadUnits(Dwarf* dwarf) {
    Dwarf_CU* cursor = nullptr;
    Unit unit;
    while (dwarf_get_units(dwarf, cursor, &cursor, nullptr, nullptr,
                           &unit.lines, &unit.functions) == 0) {
      if (dwarf_tag(&unit.functions) == DW_TAG_invalid) {
        unit.functions = unit.lines;
      }
      ForEachRange(&unit.lines, [&](Dwarf_Addr begin, Dwarf_Addr end) {
        unit.end = end;
        units_[begin] = unit;
      });
    }
  }

  void ReadSymbols() {
    has_symbols_ = true;
    const int count = dwfl_module_getsymtab(module_);
    for (int i = 1; i < count; ++i) {
      GElf_Sym symbol;
      Symbol found;
      GElf_Word section = 0;
      Elf* elf = nullptr;
      Dwarf_Addr moved = 0;
      found.name = dwfl_module_getsym_info(module_, i, &symbol, &found.begin,
                                           &section, &elf, &moved);
      const int type = GELF_ST_TYPE(symbol.st_info);
      // "$x" marks what follows, on ARM64.
      if (found.name == nullptr || *found.name == '\0' || *found.name == '$' ||
          section == SHN_UNDEF || section == SHN_ABS ||
          (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)) {
        continue;
      }
      found.has_size = symbol.st_size != 0;
      found.end = found.has_size ? found.begin + symbol.st_size
                                 : EndOfSection(elf, section, moved);
      found.rank = RankOf(symbol, found.name);
      symbols_.push_back(found);
    }
    std::ranges::sort(symbols_, {}, [](const Symbol& symbol) {
      return std::tuple(symbol.begin, symbol.has_size, symbol.rank);
    });
  }

  const std::vector<Function>& FunctionsOf(const Unit& unit) {
    const auto [found, is_new] = functions_.try_emplace(unit.functions.addr);
    if (is_new) {
      Dwarf_Die root = unit.functions;
      AddFunctions(&root, found->second);
      std::ranges::sort(found->second, {}, &Function::begin);
    }
    return found->second;
  }

  // From debug information; nothing: there is none for the address.
  std::vector<SourceLine> LinesAt(Dwarf_Addr address, std::string_view symbol) {
    const auto after = units_.upper_bound(address);
    if (after == units_.begin()) return {};
    Unit& unit = std::prev(after)->second;
    if (address >= unit.end) return {};
    std::vector<Dwarf_Die> functions;  // the outer first
    const std::vector<Function>& all = FunctionsOf(unit);
    const auto behind =
        std::ranges::upper_bound(all, address, {}, &Function::begin);
    if (behind != all.begin() && address < std::prev(behind)->end) {
      functions.push_back(std::prev(behind)->die);
      AddInlined(functions.front(), address, functions);
    }
    std::string place;
    if (Dwarf_Line* const line = dwarf_getsrc_die(&unit.lines, address)) {
      int number = 0;
      dwarf_lineno(line, &number);
      place = PlaceOf(dwarf_linesrc(line, nullptr, nullptr),
                      static_cast<std::uint64_t>(number), &unit.lines);
    }
    std::vector<SourceLine> lines;
    while (!functions.empty()) {
      Dwarf_Die& function = functions.back();
      const bool is_inlined = functions.size() > 1;
      lines.push_back({NameOf(&function, is_inlined ? "" : symbol), place});
      if (is_inlined) place = CallOf(&function, &unit.lines);
      functions.pop_back();
    }
    // Of an assembler's code there may be lines alone.
    if (lines.empty() && !place.empty()) {
      lines.push_back({Demangled(std::string(symbol)), place});
    }
    return lines;
  }

  // Mangled; "": the address is in none.
  std::string_view SymbolAt(Dwarf_Addr address) {
    if (!has_symbols_) ReadSymbols();
    auto at = std::ranges::upper_bound(symbols_, address, {}, &Symbol::begin);
    // One without a length ends where the next one begins.
    std::string_view nearest;
    for (int i = 0; i < kNestedSymbols && at != symbols_.begin(); ++i) {
      const Symbol& symbol = *--at;
      if (address >= symbol.end) continue;
      if (symbol.has_size) return symbol.name;
      if (i == 0) nearest = symbol.name;
    }
    return nearest;
  }

  std::string path_;
  std::string folder_;
  Dwfl* dwfl_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  Dwarf_Addr moved_ = 0;              // of the file, in libdwfl's view
  Dwarf_Addr debug_moved_ = 0;        // of its debug information
  std::map<Dwarf_Addr, Unit> units_;  // by their beginnings
  std::map<const void*, std::vector<Function>> functions_;  // by their units
  bool has_symbols_ = false;
  std::vector<Symbol> symbols_;
};

}  // namespace

std::string Demangled(const std::string& name) {
  if (!IsMangled(name)) return name;
  char* const text =
      cplus_demangle(name.c_str(), DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
  if (text == nullptr) return name;
  std::string demangled = text;
  std::free(text);
  return demangled;
}

FunctionLines FunctionLinesOf(const NamedFile& file, const std::string& folder,
                              const std::set<std::uint64_t>& addresses) {
  FunctionLines found;
  ElfLines lines(file, folder);
  found.has_lines = lines.has_lines();
  for (const std::uint64_t address : addresses) {
    // It is behind its call, and may be the next line's.
    found.calls.push_back(lines.At(address == 0 ? 0 : address - 1));
  }
  return found;
}

}  // namespace hakmem::tools
