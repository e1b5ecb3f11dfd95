// mallctl and its relatives, with the names that programs rely on.

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "allocator/tests/conformance/support.h"
#include "gtest/gtest.h"

// Linked in, these are found by the linker; preloaded, by dlsym.
extern "C" {
__attribute__((weak)) int mallctl(const char*, void*, std::size_t*, void*,
                                  std::size_t);
__attribute__((weak)) int mallctlnametomib(const char*, std::size_t*,
                                           std::size_t*);
__attribute__((weak)) int mallctlbymib(const std::size_t*, std::size_t, void*,
                                       std::size_t*, void*, std::size_t);
__attribute__((weak)) void malloc_stats_print(void (*)(void*, const char*),
                                              void*, const char*);
}

namespace hakmem {
namespace {

template <typename Function>
void Find(Function& found, Function linked, const char* name) {
  found = linked != nullptr
              ? linked
              : reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

class JemallocControl : public testing::Test {
 protected:
  void SetUp() override {
    HAKMEM_ONLY_ON_HAKMEM();
    Find(mallctl_, &mallctl, "mallctl");
    Find(mallctlnametomib_, &mallctlnametomib, "mallctlnametomib");
    Find(mallctlbymib_, &mallctlbymib, "mallctlbymib");
    Find(malloc_stats_print_, &malloc_stats_print, "malloc_stats_print");
  }

  decltype(&mallctl) mallctl_;
  decltype(&mallctlnametomib) mallctlnametomib_;
  decltype(&mallctlbymib) mallctlbymib_;
  decltype(&malloc_stats_print) malloc_stats_print_;
};

TEST_F(JemallocControl, MallctlAnswersWhatServersAskFor) {
  const char* version = nullptr;
  std::size_t bytes = sizeof(version);
  EXPECT_EQ(mallctl_("version", &version, &bytes, nullptr, 0), 0);
  EXPECT_STREQ(version, "5.3.0-hakmem");
  std::uint64_t epoch = 7;
  bytes = sizeof(epoch);
  EXPECT_EQ(mallctl_("epoch", &epoch, &bytes, &epoch, sizeof(epoch)), 0);

  void* const block = malloc(50 << 20);
  std::size_t value = 0;
  bytes = sizeof(value);
  for (const char* const name :
       {"stats.allocated", "stats.active", "stats.resident", "stats.mapped",
        "stats.arenas.4096.small.allocated"}) {
    EXPECT_EQ(mallctl_(name, &value, &bytes, nullptr, 0), 0) << name;
    EXPECT_GE(value, std::size_t{50} << 20) << name;
  }
  free(block);
  for (const char* const name :
       {"stats.arenas.1.small.allocated", "stats.arenas.0.pmuzzy",
        "stats.arenas.1.pactive"}) {
    EXPECT_EQ(mallctl_(name, &value, &bytes, nullptr, 0), 0) << name;
    EXPECT_EQ(value, 0u) << name;
  }
  EXPECT_EQ(mallctl_("arenas.page", &value, &bytes, nullptr, 0), 0);
  EXPECT_EQ(value, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  unsigned number = 99;
  bytes = sizeof(number);
  for (const char* const name :
       {"arenas.create", "arenas.narenas", "arenas.nbins", "tcache.create"}) {
    EXPECT_EQ(mallctl_(name, &number, &bytes, nullptr, 0), 0) << name;
    EXPECT_LE(number, 1u) << name;
  }
  EXPECT_EQ(mallctl_("tcache.destroy", nullptr, nullptr, &number, 4), 0);
  EXPECT_EQ(mallctl_("thread.tcache.flush", nullptr, nullptr, nullptr, 0), 0);
  EXPECT_EQ(mallctl_("arena.1.purge", nullptr, nullptr, nullptr, 0), 0);
}

TEST_F(JemallocControl, MallctlRefusesTheRest) {
  unsigned number = 99;
  std::size_t bytes = sizeof(number);
  for (const char* const name :
       {"", "version.", "arena", "arena.0", "arena.x.purge", "arena.-1.purge",
        "arenas.create.1", "thread.allocatedp", "opt.abort"}) {
    EXPECT_EQ(mallctl_(name, &number, &bytes, nullptr, 0), ENOENT) << name;
    std::size_t mib[8];
    std::size_t length = 8;
    EXPECT_EQ(mallctlnametomib_(name, mib, &length), ENOENT) << name;
  }
  EXPECT_EQ(number, 99u);
  // Hooks for an arena's memory: hakmem has its own.
  EXPECT_EQ(mallctl_("arenas.create", &number, &bytes, &number, 8), EPERM);
  EXPECT_EQ(mallctl_("arena.0.purge", &number, &bytes, nullptr, 0), EPERM);
  EXPECT_EQ(mallctl_("tcache.destroy", nullptr, nullptr, &number, 8), EINVAL);
  // As much as there is room for.
  std::uint64_t epoch = 7;
  bytes = 2;
  EXPECT_EQ(mallctl_("epoch", &epoch, &bytes, nullptr, 0), EINVAL);
  EXPECT_EQ(bytes, 2u);
  EXPECT_EQ(epoch, 1u);
  EXPECT_EQ(mallctl_("epoch", &epoch, nullptr, nullptr, 0), 0);
}

TEST_F(JemallocControl, NamesAreNumbers) {
  std::size_t mib[5];
  std::size_t length = 5;
  ASSERT_EQ(mallctlnametomib_("stats.arenas.0.small.allocated", mib, &length),
            0);
  ASSERT_EQ(length, 5u);
  EXPECT_EQ(mib[2], 0u);
  std::size_t value = 0;
  std::size_t bytes = sizeof(value);
  EXPECT_EQ(mallctlbymib_(mib, length, &value, &bytes, nullptr, 0), 0);
  EXPECT_GT(value, 0u);
  mib[2] = 1;
  EXPECT_EQ(mallctlbymib_(mib, length, &value, &bytes, nullptr, 0), 0);
  EXPECT_EQ(value, 0u);
  mib[0] = 1000;
  EXPECT_EQ(mallctlbymib_(mib, length, &value, &bytes, nullptr, 0), ENOENT);
  EXPECT_EQ(mallctlbymib_(mib, 0, &value, &bytes, nullptr, 0), ENOENT);
}

TEST_F(JemallocControl, StatisticsGoToTheProgram) {
  std::string text;
  malloc_stats_print_(
      [](void* context, const char* part) {
        static_cast<std::string*>(context)->append(part);
      },
      &text, nullptr);
  EXPECT_EQ(text.rfind("hakmem ", 0), 0u) << text;
  EXPECT_NE(text.find("pool"), std::string::npos) << text;
}

}  // namespace
}  // namespace hakmem
