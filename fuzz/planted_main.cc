// Switches on the defect that HAKMEM_FUZZ_DEFECT names, in builds that have
// any. Part of every fuzz target.

#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "allocator/base/planted_defect.h"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* name = std::getenv("HAKMEM_FUZZ_DEFECT");
  if (name == nullptr) return 0;
  for (std::size_t i = 0; i < std::size(hakmem::kDefectNames); ++i) {
    if (hakmem::kDefectsCompiledIn && hakmem::kDefectNames[i] == name) {
      hakmem::PlantDefect(static_cast<hakmem::Defect>(i));
      return 0;
    }
  }
  std::fprintf(stderr, "HAKMEM_FUZZ_DEFECT: this build has no defect '%s'\n",
               name);
  std::exit(2);
}
