#include "allocator/stacks/startup_modules.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "allocator/platform/fake_sandbox.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::uintptr_t AddressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Whether each segment of each module is found, where FindModule finds it.
bool KnowsAllThereIs() {
  bool all = true;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
          const std::uintptr_t last = info->dlpi_addr +
                                      info->dlpi_phdr[i].p_vaddr +
                                      info->dlpi_phdr[i].p_memsz - 1;
          ModuleRange range = {};
          ModuleOf expected = {};
          if (!FindStartupModule(last, range) || !FindModule(last, expected) ||
              range.base != info->dlpi_addr || range.begin != expected.begin ||
              range.end != expected.end ||
              range.unwind_table != expected.unwind_table) {
            *static_cast<bool*>(context) = false;
          }
        }
        return 0;
      },
      &all);
  return all;
}

// In children: what is noted is noted once for a process.
TEST(StartupModules, AreThoseOfTheLoadersList) {
  EXPECT_EXIT(
      {
        NoteStartupModules();
        ModuleRange range = {};
        int on_stack = 0;
        for (const std::uintptr_t nowhere :
             {AddressOf(&on_stack), std::uintptr_t{0}, std::uintptr_t{4096},
              ~std::uintptr_t{0}}) {
          if (FindStartupModule(nowhere, range)) _exit(1);
        }
        _exit(KnowsAllThereIs() ? 42 : 2);
      },
      testing::ExitedWithCode(42), "");
}

TEST(StartupModules, NoneBeforeTheConstructor) {
  EXPECT_EXIT(
      {
        ModuleRange range = {};
        if (FindStartupModule(AddressOf(dlsym(RTLD_NEXT, "qsort")), range)) {
          _exit(1);
        }
        NoteStartupModules();
        _exit(KnowsAllThereIs() ? 42 : 2);
      },
      testing::ExitedWithCode(42), "");
}

TEST(StartupModules, NotWhatIsLoadedLater) {
  EXPECT_EXIT(
      {
        NoteStartupModules();
        void* const library = dlopen("libthread_db.so.1", RTLD_LAZY);
        if (library == nullptr) _exit(77);
        const std::uintptr_t address = AddressOf(dlsym(library, "td_init"));
        ModuleOf expected;
        ModuleRange range = {};
        if (!FindModule(address, expected)) _exit(1);
        if (FindStartupModule(address, range)) _exit(2);
        // libc has a search or not.
        if (FindModuleDirectly(address, /*runs=*/true, range)) {
          if (range.begin != expected.begin ||
              range.table_begin != expected.table_begin ||
              range.unwind_table != expected.unwind_table) {
            _exit(4);
          }
          if (!FindModuleDirectly(address, /*runs=*/false, range)) _exit(5);
          if (range.end != 0) _exit(6);
          dlclose(library);
          if (FindModuleDirectly(address, /*runs=*/true, range)) _exit(7);
        } else if (dlsym(RTLD_DEFAULT, "_dl_find_object") != nullptr) {
          _exit(8);
        }
        const bool libc =
            FindModuleDirectly(AddressOf(dlsym(RTLD_NEXT, "qsort")),
                               /*runs=*/false, range) &&
            range.end != 0;
        _exit(libc ? 42 : 3);
      },
      testing::ExitedWithCode(42), "");
}

TEST(StartupModules, TheirTablesLieInASegmentThatIsAllThere) {
  EXPECT_EXIT(
      {
        NoteStartupModules();
        ModuleRange range = {};
        if (!FindStartupModule(AddressOf(dlsym(RTLD_NEXT, "qsort")), range)) {
          _exit(1);
        }
        if (range.unwind_table < range.table_begin ||
            range.unwind_table >= range.table_end) {
          _exit(2);
        }
        volatile unsigned char sum = 0;
        for (std::uintptr_t at = range.table_begin; at < range.table_end;
             ++at) {
          sum = static_cast<unsigned char>(
              sum + *reinterpret_cast<const unsigned char*>(at));
        }
        _exit(42);
      },
      testing::ExitedWithCode(42), "");
}

TEST(StartupModules, FindWhatLibcItselfDefines) {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == nullptr) GTEST_SKIP() << "another libc";
  for (const char* name :
       {"munmap", "madvise", "clock_gettime", "_thread_db_pthread_tid"}) {
    EXPECT_EQ(FindInLibc(name), AddressOf(dlsym(libc, name))) << name;
  }
  EXPECT_EQ(FindInLibc("no such name"), 0U);
}

TEST(StartupModules, AskTheKernelForNoCopies) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv, SYS_openat})) _exit(77);
        NoteStartupModules();
        ModuleRange range = {};
        const bool libc =
            FindStartupModule(AddressOf(dlsym(RTLD_NEXT, "qsort")), range);
        _exit(libc ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace hakmem
