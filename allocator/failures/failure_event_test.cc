#include "allocator/failures/failure_event.h"

#include <cerrno>
#include <set>
#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

// The names of the enumerators 0 to `count` - 1, which must differ.
template <typename Enum>
std::set<std::string> Names(const char* (*name)(Enum), unsigned count) {
  std::set<std::string> names;
  for (unsigned i = 0; i < count; ++i) names.insert(name(static_cast<Enum>(i)));
  EXPECT_EQ(names.size(), count);
  EXPECT_STREQ(name(static_cast<Enum>(count)), "invalid");
  return names;
}

TEST(FailureEvent, AllHaveNamesOfTheirOwn) {
  EXPECT_TRUE(Names(&FailureReasonName, 4).contains("MapFail"));
  EXPECT_TRUE(
      Names(&FailureDetailName, kFailureDetailCount).contains("rlimit_as"));
  EXPECT_TRUE(Names(&DispositionName, kDispositionCount)
                  .contains("served_after_new_handler"));
  EXPECT_TRUE(Names(&CallName, kCallCount).contains("operator new[]"));
  EXPECT_TRUE(Names(&VmCallName, 6).contains("mremap"));
}

TEST(FailureEvent, TheFirstAndLastNamesAreInPlace) {
  EXPECT_STREQ(FailureReasonName(FailureReason::kThreshold), "Threshold");
  EXPECT_STREQ(FailureReasonName(FailureReason::kMapFail), "MapFail");
  EXPECT_STREQ(FailureDetailName(FailureDetail::kSize), "size");
  EXPECT_STREQ(FailureDetailName(FailureDetail::kHeapLimit), "heap_limit");
  EXPECT_STREQ(FailureDetailName(FailureDetail::kUnknown), "unknown");
  EXPECT_STREQ(DispositionName(Disposition::kReturnedNull), "returned_null");
  EXPECT_STREQ(DispositionName(Disposition::kServedByDetour),
               "served_by_detour");
  EXPECT_STREQ(CallName(Call::kMalloc), "malloc");
  EXPECT_STREQ(CallName(Call::kNewArrayNothrow), "operator new[](nothrow)");
  EXPECT_STREQ(CallName(Call::kRallocx), "rallocx");
  EXPECT_STREQ(VmCallName(VmCall::kMap), "mmap");
  EXPECT_STREQ(VmCallName(VmCall::kMove), "mremap");
  EXPECT_STREQ(VmCallName(VmCall::kProtect), "mprotect");
}

TEST(FailureEvent, CommonErrorsHaveNames) {
  EXPECT_STREQ(ErrorName(ENOMEM), "ENOMEM");
  EXPECT_STREQ(ErrorName(EEXIST), "EEXIST");
  EXPECT_STREQ(ErrorName(0), "");
  EXPECT_STREQ(ErrorName(12345), "");
}

}  // namespace
}  // namespace hakmem
