#include "allocator/stacks/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "allocator/platform/fake_sandbox.h"
#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::uintptr_t AddressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// From the file's sections, which are not what the code under test reads.
std::string BuildIdInFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)),
                         std::istreambuf_iterator<char>());
  if (file.size() < sizeof(ElfW(Ehdr))) return "no file";
  ElfW(Ehdr) header;
  std::memcpy(&header, file.data(), sizeof(header));
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section;
    std::memcpy(&section, &file[header.e_shoff + i * sizeof(section)],
                sizeof(section));
    if (section.sh_type != SHT_NOTE) continue;
    ElfW(Nhdr) note;
    std::memcpy(&note, &file[section.sh_offset], sizeof(note));
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4) continue;
    std::string hex;
    for (unsigned j = 0; j < note.n_descsz; ++j) {
      const auto byte = static_cast<unsigned char>(
          file[section.sh_offset + sizeof(note) + 4 + j]);
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
    return hex;
  }
  return "";
}

int g_data = 1;
void Code() { g_data = 2; }

TEST(FindModuleTest, KnowsTheProgram) {
  for (const std::uintptr_t address :
       {AddressOf(reinterpret_cast<void*>(&Code)), AddressOf(&g_data)}) {
    ModuleOf module;
    errno = 1234;
    ASSERT_TRUE(FindModule(address, module));
    EXPECT_EQ(errno, 1234);
    Dl_info info = {};
    ASSERT_NE(dladdr(reinterpret_cast<void*>(address), &info), 0);
    EXPECT_EQ(module.base, AddressOf(info.dli_fbase));
    const std::string path =
        std::filesystem::read_symlink("/proc/self/exe").string();
    EXPECT_EQ(module.path, path.substr(0, sizeof(module.path) - 1));
    EXPECT_EQ(module.build_id, BuildIdInFile("/proc/self/exe"));
    EXPECT_LE(module.begin, address);
    EXPECT_GT(module.end, address);
  }
}

TEST(FindModuleTest, KnowsTheProgramWhereTheFirstThreadHasEnded) {
  const std::string path =
      std::filesystem::read_symlink("/proc/self/exe").string();
  EXPECT_EXIT(
      ExitWithoutFirstThread([&path] {
        ModuleOf module;
        return FindModule(AddressOf(reinterpret_cast<void*>(&Code)), module) &&
                       path.starts_with(module.path) && module.path[0] != '\0'
                   ? 42
                   : 1;
      }),
      testing::ExitedWithCode(42), "");
}

TEST(FindModuleTest, KnowsASharedLibrary) {
  const std::uintptr_t address = AddressOf(dlsym(RTLD_NEXT, "qsort"));
  ModuleOf module;
  ASSERT_TRUE(FindModule(address, module));
  Dl_info info = {};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(address), &info), 0);
  EXPECT_EQ(module.base, AddressOf(info.dli_fbase));
  EXPECT_STREQ(module.path, info.dli_fname);
  EXPECT_EQ(module.build_id, BuildIdInFile(module.path));
  EXPECT_EQ(std::strlen(module.build_id), 40u);
}

struct AllModules {
  std::vector<std::uintptr_t> bases;
  std::vector<std::uintptr_t> addresses;
};

TEST(FindModuleTest, FindsWhatTheLoaderListsAndNothingElse) {
  AllModules all;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
          const std::uintptr_t begin =
              info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
          static_cast<AllModules*>(context)->bases.push_back(info->dlpi_addr);
          static_cast<AllModules*>(context)->addresses.push_back(begin);
          static_cast<AllModules*>(context)->bases.push_back(info->dlpi_addr);
          static_cast<AllModules*>(context)->addresses.push_back(
              begin + info->dlpi_phdr[i].p_memsz - 1);
        }
        return 0;
      },
      &all);
  ASSERT_GT(all.addresses.size(), 8u);
  for (std::size_t i = 0; i < all.addresses.size(); ++i) {
    ModuleOf module;
    ASSERT_TRUE(FindModule(all.addresses[i], module));
    EXPECT_EQ(module.base, all.bases[i]);
  }
  int on_stack = 0;
  void* const mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ModuleOf module;
  for (const std::uintptr_t nowhere :
       {AddressOf(&on_stack), AddressOf(mapped), std::uintptr_t{0},
        std::uintptr_t{4096}, ~std::uintptr_t{0}}) {
    EXPECT_FALSE(FindModule(nowhere, module)) << std::hex << nowhere;
  }
  munmap(mapped, 4096);
}

TEST(FindModuleTest, KnowsTheKernelsOwnCode) {
  const unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso == 0) GTEST_SKIP() << "this kernel maps no code into programs";
  ModuleOf module;
  ASSERT_TRUE(FindModule(vdso + 64, module));
  EXPECT_NE(std::strstr(module.path, "vdso"), nullptr) << module.path;
}

TEST(FindModuleTest, WorksByTheFileWhereASandboxForbidsTheCall) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv})) _exit(77);
        ModuleOf module;
        const bool found =
            FindModule(AddressOf(dlsym(RTLD_NEXT, "qsort")), module);
        _exit(found && std::strstr(module.path, "libc.so") != nullptr ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

TEST(FindModuleTest, FindsNothingWhereASandboxForbidsAll) {
  EXPECT_EXIT(
      {
        if (!ForbidSystemCalls({SYS_process_vm_readv, SYS_openat})) _exit(77);
        ModuleOf module;
        _exit(FindModule(AddressOf(&g_data), module) ? 1 : 42);
      },
      testing::ExitedWithCode(42), "");
}

// As `ld.so PROGRAM`: the kernel's /proc/self/exe is the loader's.
TEST(FindModuleTest, AProgramThatTheLoaderWasToldToRun) {
  constexpr char kVariable[] = "MODULES_TEST_PROGRAM";
  ModuleOf program;
  ASSERT_TRUE(FindModule(AddressOf(reinterpret_cast<void*>(&Code)), program));
  if (const char* const path = getenv(kVariable)) {
    _exit(std::strcmp(program.path, path) == 0 ? 42 : 1);
  }
  ModuleOf loader;
  if (!FindModule(getauxval(AT_BASE), loader)) {
    GTEST_SKIP() << "it was linked statically";
  }
  EXPECT_EXIT(
      {
        setenv(kVariable, program.path, 1);
        execl(loader.path, loader.path, program.path,
              "--gtest_filter=FindModuleTest.AProgramThatTheLoaderWasToldToRun",
              nullptr);
        _exit(2);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace hakmem
