#include "tools/hakmem/symbolizer.h"

#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/hakmem/elf_file.h"
#include "tools/hakmem/rust_name.h"
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

void ExpectOwnName(const std::string& program) {
  Symbolizer symbolizer({program, ""});
  const std::vector<Module> modules = {{OwnPath(), BuildIdOfFile(OwnPath())}};
  const Frame frame = OwnFrame();
  symbolizer.Resolve(modules, {frame, frame});
  ASSERT_THAT(symbolizer.notes(), IsEmpty());
  ASSERT_FALSE(symbolizer.Lines(frame).empty());
  const SourceLine& line = symbolizer.Lines(frame).back();
  EXPECT_THAT(line.function, HasSubstr("WellKnownFunction"));
  EXPECT_THAT(line.place, HasSubstr("symbolizer_test.cc:"));
}

TEST(SymbolizerTest, EitherProgramFindsFunctionAndLine) {
  ExpectOwnName("");
  ExpectOwnName("addr2line");
}

TEST(SymbolizerTest, WithoutAProgramItSaysSo) {
  Symbolizer symbolizer({"/no/such/program", ""});
  EXPECT_THAT(symbolizer.notes(), Contains(HasSubstr("/no/such/program")));
  symbolizer.Resolve({{OwnPath(), ""}}, {OwnFrame()});
  EXPECT_THAT(symbolizer.Lines(OwnFrame()), IsEmpty());
  EXPECT_THAT(Symbolizer({"none", ""}).notes(), IsEmpty());
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

TEST(SymbolizerTest, AFailingProgramIsNamed) {
  Symbolizer symbolizer({"/bin/false", ""});
  symbolizer.Resolve({{OwnPath(), ""}}, {OwnFrame()});
  EXPECT_THAT(symbolizer.notes(),
              Contains(HasSubstr("false failed for " + OwnPath())));
}

TEST(SymbolizerTest, OutputIsParsed) {
  const std::vector<SymbolizedAddress> addresses = ParseSymbolizerOutput(
      "0x0000000000001144\n"
      "inner(int)\n/a/b c.cc:12 (discriminator 3)\n"
      "outer\n/a/d.cc:?\n"
      "0x20\n??\n??:0\n"
      "0x30\nf\n??:0\n\n");
  ASSERT_THAT(addresses, SizeIs(3));
  EXPECT_EQ(addresses[0].address, 0x1144u);
  ASSERT_THAT(addresses[0].lines, SizeIs(2));
  EXPECT_EQ(addresses[0].lines[0].function, "inner(int)");
  EXPECT_EQ(addresses[0].lines[0].place, "/a/b c.cc:12");
  EXPECT_EQ(addresses[0].lines[1].place, "");
  EXPECT_THAT(addresses[1].lines, IsEmpty());
  EXPECT_EQ(addresses[2].lines[0].function, "f");
}

// A program that says how often it was started, and is the symbolizer.
std::string Counting(const std::string& folder) {
  std::string path = folder + "/llvm-symbolizer";
  std::ofstream(path) << "#!/bin/sh\necho >>" << folder << "/starts\nexec "
                      << FindProgram("llvm-symbolizer-19") << " \"$@\"\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path;
}

TEST(SymbolizerTest, OneProcessAnswersForAllFiles) {
  if (FindProgram("llvm-symbolizer-19").empty()) GTEST_SKIP();
  const absl::StatusOr<std::string> folder = MakeTemporaryFolder("symbols");
  ASSERT_TRUE(folder.ok()) << folder.status();
  const std::string copy = *folder + "/a copy";
  std::filesystem::create_symlink(OwnPath(), copy);
  Symbolizer symbolizer({Counting(*folder), ""});
  const Frame own = OwnFrame();
  const Frame in_copy = {1, own.offset};
  symbolizer.Resolve({{OwnPath(), ""}, {copy, ""}}, {own, in_copy, {1, 0}});
  for (const Frame& frame : {own, in_copy}) {
    ASSERT_FALSE(symbolizer.Lines(frame).empty());
    EXPECT_THAT(symbolizer.Lines(frame).back().function,
                HasSubstr("WellKnownFunction"));
  }
  EXPECT_EQ(std::filesystem::file_size(*folder + "/starts"), 1u);
  std::filesystem::remove_all(*folder);
}

TEST(RustNameTest, TheOlderManglingIsUndone) {
  EXPECT_EQ(ReadableName("_$LT$alloc..string..String$u20$as$u20$core..fmt.."
                         "Display$GT$::fmt::h0123456789abcdef"),
            "<alloc::string::String as core::fmt::Display>::fmt");
  EXPECT_EQ(ReadableName("demo::_$LT$impl$u20$demo..T$GT$::go::h"
                         "0123456789abcdef"),
            "demo::<impl demo::T>::go");
  for (const char* const name :
       {"Cache::h(int)", "a::h0123456789abcdeF", "h0123456789abcdef",
        "::h0123456789abcdef", "f(int, ...)"}) {
    EXPECT_EQ(ReadableName(name), name);
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

TEST(SubprocessTest, InputGoesInAndOutputComesOut) {
  const absl::StatusOr<std::string> echoed =
      OutputOf({FindProgram("cat")}, "a\nb");
  ASSERT_TRUE(echoed.ok()) << echoed.status();
  EXPECT_EQ(*echoed, "a\nb");
  // More than a pipe holds, both ways.
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(OutputOf({FindProgram("cat")}, much).value(), much);
}

TEST(SubprocessTest, FailuresAreErrors) {
  EXPECT_THAT(OutputOf({FindProgram("false")}, "").status().message(),
              HasSubstr("exit status 1"));
  EXPECT_FALSE(OutputOf({"/no/such/program"}, "").ok());
  EXPECT_EQ(FindProgram("no-such-program"), "");
}

}  // namespace
}  // namespace hakmem::tools
