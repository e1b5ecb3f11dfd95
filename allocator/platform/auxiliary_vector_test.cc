#include "allocator/platform/auxiliary_vector.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

using Words = std::vector<unsigned long>;

// Two arguments, three variables, and what the kernel told.
Words Stack() {
  return {2,         100, 101,       0,     200,       201,
          202,       0,   AT_PAGESZ, 16384, AT_SECURE, 1,
          AT_RANDOM, 77,  AT_NULL,   0,     AT_UID,    5};
}

TEST(AuxiliaryVectorTest, IsWhatLibcSays) {
  errno = 1234;
  for (const unsigned long type :
       {AT_PAGESZ, AT_RANDOM, AT_SECURE, AT_PHDR, AT_PHNUM, AT_ENTRY, AT_BASE,
        AT_UID, AT_EXECFN, 4711}) {
    EXPECT_EQ(AuxiliaryValue(type), getauxval(type)) << type;
    errno = 1234;
  }
  EXPECT_EQ(AuxiliaryValue(4711), 0u);
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(KernelPageBytes(), static_cast<std::size_t>(getpagesize()));
}

TEST(AuxiliaryVectorTest, LiesBehindTheEnvironment) {
  const Words stack = Stack();
  EXPECT_EQ(AuxiliaryValueAt(stack.data(), AT_PAGESZ), 16384u);
  EXPECT_EQ(AuxiliaryValueAt(stack.data(), AT_SECURE), 1u);
  EXPECT_EQ(AuxiliaryValueAt(stack.data(), AT_RANDOM), 77u);
  EXPECT_EQ(AuxiliaryValueAt(stack.data(), AT_UID), 0u) << "behind its end";
}

// As unsetenv does: the others move up, and the last null stays.
TEST(AuxiliaryVectorTest, IsFoundWhenVariablesAreGone) {
  for (const std::size_t gone : {1u, 2u, 3u}) {
    Words stack = Stack();
    for (std::size_t i = 0; i < gone; ++i) stack[6 - i] = 0;
    EXPECT_EQ(AuxiliaryValueAt(stack.data(), AT_PAGESZ), 16384u) << gone;
    EXPECT_EQ(AuxiliaryValueAt(stack.data(), AT_SECURE), 1u) << gone;
  }
}

// As a program that writes a null into the middle of its environment.
TEST(AuxiliaryVectorTest, LibcIsAskedWhereItIsNotAsTheKernelLeftIt) {
  Words stack = Stack();
  stack[4] = 0;
  EXPECT_EQ(AuxiliaryValueAt(stack.data(), AT_PAGESZ), getauxval(AT_PAGESZ));
  EXPECT_EQ(AuxiliaryValueAt(nullptr, AT_RANDOM), getauxval(AT_RANDOM));
}

}  // namespace
}  // namespace hakmem
