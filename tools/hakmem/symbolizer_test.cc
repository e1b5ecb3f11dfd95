#include "tools/hakmem/symbolizer.h"

#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/debug_files.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/function_lines.h"
#include "tools/hakmem/subprocess.h"

namespace hakmem::tools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

[[gnu::noinline]] std::uintptr_t AddressInCaller() {
  return reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
}

// Whose name the symbolizer has to find.
[[gnu::noinline]] std::uintptr_t WellKnownFunction() {
  const std::uintptr_t address = AddressInCaller();
  // A tail call would leave this function before.
  asm volatile("" : : "r"(address));
  return address;
}

std::string OwnPath() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

std::uintptr_t OwnBase() {
  std::uintptr_t base = 0;
  ::dl_iterate_phdr(
      [](struct dl_phdr_info* info, std::size_t, void* found) {
        *static_cast<std::uintptr_t*>(found) = info->dlpi_addr;
        return 1;  // the program is the first
      },
      &base);
  return base;
}

Frame OwnFrame() { return {0, WellKnownFunction() - OwnBase()}; }

TEST(SymbolizerTest, FunctionAndLineAreFound) {
  Symbolizer symbolizer({});
  const std::vector<Module> modules = {{OwnPath(), BuildIdOfFile(OwnPath())}};
  const Frame frame = OwnFrame();
  symbolizer.Resolve(modules, {frame, frame});
  ASSERT_THAT(symbolizer.notes(), IsEmpty());
  ASSERT_FALSE(symbolizer.Lines(frame).empty());
  const SourceLine& line = symbolizer.Lines(frame).back();
  EXPECT_THAT(line.function, HasSubstr("WellKnownFunction"));
  EXPECT_THAT(line.place, HasSubstr("symbolizer_test.cc:"));
}

TEST(SymbolizerTest, NoNamesButOnRequest) {
  Symbolizer none({"none", ""});
  none.Resolve({{OwnPath(), ""}}, {OwnFrame()});
  EXPECT_THAT(none.Lines(OwnFrame()), IsEmpty());
  EXPECT_THAT(none.notes(), IsEmpty());
  EXPECT_THAT(Symbolizer({"addr2line", ""}).notes(),
              Contains(HasSubstr("--symbolizer=addr2line has no effect")));
}

TEST(SymbolizerTest, AnotherBuildIsNotUsed) {
  Symbolizer symbolizer({});
  symbolizer.Resolve({{OwnPath(), "00112233"}}, {OwnFrame()});
  EXPECT_THAT(symbolizer.Lines(OwnFrame()), IsEmpty());
  EXPECT_THAT(symbolizer.notes(), Contains(HasSubstr("another build")));
}

TEST(SymbolizerTest, AMissingFileIsNamed) {
  Symbolizer symbolizer({});
  symbolizer.Resolve({{"/no/such/library.so", "00"}, {"[vdso]", ""}},
                     {{0, 16}, {1, 16}, {Frame::kNoModule, 16}});
  EXPECT_THAT(symbolizer.notes(), SizeIs(2));
  EXPECT_THAT(symbolizer.notes(), Contains(HasSubstr("/no/such/library.so")));
}

TEST(SymbolizerTest, AFolderOfSymbolsIsSearched) {
  const absl::StatusOr<std::string> folder = MakeTemporaryFolder("symbols");
  ASSERT_TRUE(folder.ok()) << folder.status();
  std::filesystem::create_symlink(OwnPath(), *folder + "/server");
  Symbolizer symbolizer({"", *folder});
  symbolizer.Resolve({{"/gone/server", BuildIdOfFile(OwnPath())}},
                     {OwnFrame()});
  EXPECT_FALSE(symbolizer.Lines(OwnFrame()).empty());
  std::filesystem::remove_all(*folder);
}

TEST(DebugFilesTest, APackageOfDebianIsNamed) {
  const absl::StatusOr<std::string> root = MakeTemporaryFolder("root");
  ASSERT_TRUE(root.ok()) << root.status();
  const std::string lists = *root + "/var/lib/dpkg/info";
  std::filesystem::create_directories(lists);
  std::ofstream(lists + "/libfoo1:amd64.list")
      << "/usr\n/usr/lib/libfoo.so.1\n";
  std::ofstream(lists + "/libc6.list") << "/lib/libc.so.6\n";
  EXPECT_EQ(RemedyForLines(*root, "/usr/lib/libfoo.so.1", "abcdef"),
            "the package libfoo1-dbgsym brings them");
  EXPECT_EQ(RemedyForLines(*root, "/usr/lib/libc.so.6", ""),
            "the package libc6-dbg brings them");
  EXPECT_EQ(RemedyForLines(*root, "/srv/server", "abcdef"),
            "it was built without -g, or stripped, and "
            "/usr/lib/debug/.build-id/ab/cdef.debug is not here");
  EXPECT_EQ(RemedyForLines(*root, "/srv/server", ""),
            "it was built without -g, or stripped");
  std::filesystem::create_directories(*root + "/usr/bin/rpm");
  EXPECT_THAT(RemedyForLines(*root, "/usr/lib64/libfoo.so.1", "abcdef"),
              HasSubstr("dnf install /usr/lib/debug/.build-id/ab/cdef.debug"));
  std::filesystem::remove_all(*root);
}

TEST(DebugFilesTest, APipeIsNotOpened) {
  const absl::StatusOr<std::string> folder = MakeTemporaryFolder("pipe");
  ASSERT_TRUE(folder.ok()) << folder.status();
  ASSERT_EQ(::mkfifo((*folder + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(NamedFile::Open(*folder + "/pipe").descriptor(), -1);
  EXPECT_EQ(NamedFile::Open(*folder).descriptor(), -1);
  std::filesystem::remove_all(*folder);
}

TEST(DebugFilesTest, AContainersFilesAreItsOwn) {
  const std::string root = "/proc/7/root";
  EXPECT_EQ(RootOf(root + "/usr/bin/x"), root);
  EXPECT_EQ(RootOf(root + "s/usr/bin/x"), "");
  EXPECT_EQ(RootOf("/proc/7/map_files/1-2"), "");
  EXPECT_EQ(RootOf("/usr/bin/x"), "");
  EXPECT_EQ(SystemDebugFile(root, "abcd"),
            root + "/usr/lib/debug/.build-id/ab/cd.debug");
}

TEST(DemangledTest, NamesAreAsTheirAuthorsWroteThem) {
  EXPECT_EQ(Demangled("_ZN4demo5storeEi"), "demo::store(int)");
  EXPECT_EQ(Demangled("_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt.."
                      "Display$GT$3fmt17h0123456789abcdefE"),
            "<alloc::string::String as core::fmt::Display>::fmt");
  EXPECT_EQ(Demangled("_RNvCs15kBYyAo9fc_7mycrate7example"),
            "mycrate::example");
  for (const char* const name : {"main", "_Zebra", "_start", "f(int)", ""}) {
    EXPECT_EQ(Demangled(name), name);
  }
}

TEST(SymbolizerTest, WhatIsNoProgramHasNoBuildId) {
  EXPECT_EQ(BuildIdOfFile("/etc/passwd"), "");
  EXPECT_EQ(BuildIdOfFile("/no/such/file"), "");
  EXPECT_EQ(BuildIdOfFile("/"), "");
}

TEST(ElfFileTest, ALoaderBelongsToAProgramThatIsNotStatic) {
  EXPECT_EQ(LoaderOf("/sbin/ldconfig"), "");
  EXPECT_THAT(LoaderOf("/bin/sh").value_or(""),
              testing::HasSubstr("/ld-linux"));
  EXPECT_EQ(LoaderOf("/etc/passwd"), std::nullopt);
  EXPECT_EQ(LoaderOf("/no/such/file"), std::nullopt);
}

TEST(SubprocessTest, WorkIsDoneApart) {
  std::string output = "a";
  int here = 0;
  // More than a pipe holds.
  const std::string much(1 << 20, 'x');
  const absl::Status status = RunApart(
      [&](std::FILE* file) {
        here = 1;
        std::fputs(much.c_str(), file);
      },
      output);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(output, "a" + much);
  EXPECT_EQ(here, 0);
}

TEST(SubprocessTest, WhatFailsApartIsAnError) {
  std::string output;
  const absl::Status status = RunApart(
      [](std::FILE* file) {
        std::fputs("begun", file);
        std::fflush(file);
        ::signal(SIGABRT, SIG_DFL);
        std::abort();
      },
      output);
  EXPECT_EQ(status.message(), "signal 6");
  EXPECT_EQ(output, "begun");
  EXPECT_EQ(FindProgram("no-such-program"), "");
}

}  // namespace
}  // namespace hakmem::tools
