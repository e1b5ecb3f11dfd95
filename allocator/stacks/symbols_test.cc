#include "allocator/stacks/symbols.h"

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace hakmem {

extern "C" __attribute__((noinline)) int hakmem_symbols_test_function(int n) {
  return n * 3 + static_cast<int>(std::strlen("abc"));
}

namespace {

TEST(Symbols, NamesAFunctionOfTheProgram) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(&hakmem_symbols_test_function) + 1;
  ModuleOf module = {};
  ASSERT_TRUE(FindModule(address, module));
  Symbol symbol = {};
  ASSERT_TRUE(FindSymbol(module, address, symbol));
  EXPECT_STREQ(symbol.name, "hakmem_symbols_test_function");
  EXPECT_EQ(symbol.offset, 1U);
}

TEST(Symbols, NamesAnExportedFunctionOfALibrary) {
  const auto address = reinterpret_cast<std::uintptr_t>(&qsort);
  ModuleOf module = {};
  ASSERT_TRUE(FindModule(address, module));
  Symbol symbol = {};
  ASSERT_TRUE(FindSymbol(module, address, symbol)) << module.path;
  EXPECT_STREQ(std::strstr(symbol.name, "qsort") != nullptr ? "qsort" : "",
               "qsort");
  EXPECT_EQ(symbol.offset, 0U);
}

TEST(Symbols, AnotherFileHasNoNamesForThisModule) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(&hakmem_symbols_test_function);
  ModuleOf module = {};
  ASSERT_TRUE(FindModule(address, module));
  Symbol symbol = {};
  std::strcpy(module.path, "/bin/sh");
  EXPECT_FALSE(FindSymbol(module, address, symbol));
  std::strcpy(module.path, "/no/such/file");
  EXPECT_FALSE(FindSymbol(module, address, symbol));
}

TEST(Symbols, APipeInPlaceOfTheFileIsNotWaitedFor) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(&hakmem_symbols_test_function);
  ModuleOf module = {};
  ASSERT_TRUE(FindModule(address, module));
  const std::string pipe = testing::TempDir() + "/symbols_test_pipe";
  ASSERT_LT(pipe.size(), sizeof(module.path));
  std::remove(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::strcpy(module.path, pipe.c_str());
  Symbol symbol = {};
  EXPECT_FALSE(FindSymbol(module, address, symbol));
  std::remove(pipe.c_str());
}

TEST(Symbols, AnAddressThatIsNoFunctionHasNoName) {
  static constinit int data = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(&data);
  ModuleOf module = {};
  ASSERT_TRUE(FindModule(address, module));
  Symbol symbol = {};
  EXPECT_FALSE(FindSymbol(module, address, symbol));
}

}  // namespace
}  // namespace hakmem
