#include "allocator/failures/failure_text.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

std::string Text(const FailureEvent& event) {
  RawPrinter out;
  PrintFailure(event, out);
  return std::string(out.text());
}

FailureEvent Event() {
  FailureEvent event;
  event.sequence = 17;
  event.call = Call::kCalloc;
  event.count = 5;
  event.size_bytes = 1000;
  event.alignment_bytes = 16;
  event.attempts = 2;
  event.disposition = Disposition::kReturnedNull;
  event.reason = FailureReason::kMapFail;
  event.detail = FailureDetail::kRlimitAs;
  event.thread_id = 4711;
  std::strcpy(event.thread_name, "a\x1b[2J");
  event.refused_call = VmCall::kMap;
  event.refused_bytes = 2 << 20;
  event.error_number = ENOMEM;
  std::strcpy(event.limit_name, "RLIMIT_AS");
  event.limit_value = 1 << 30;
  event.limit_use = 1 << 29;
  event.limit_needed = 2 << 20;
  event.frame_count = 2;
  event.frames[0] = 0x401136;
  event.frames[1] = 0x7f0012345678;
  return event;
}

TEST(FailureText, SaysWhatHappened) {
  EXPECT_EQ(Text(Event()),
            "#17 calloc of 5 times 1000 bytes returned_null after 2 attempts: "
            "MapFail/rlimit_as (thread 4711 \"a\\u001b[2J\")\n"
            "    mmap of 2.0 MiB: ENOMEM; RLIMIT_AS is 1.0 GiB, in use "
            "512.0 MiB, needed 2.0 MiB\n"
            "    from 0x401136 0x7f0012345678\n");
}

TEST(FailureText, LeavesOutWhatIsNotKnown) {
  FailureEvent event = Event();
  event.count = 0;
  event.alignment_bytes = 4096;
  event.attempts = 1;
  event.reason = FailureReason::kThreshold;
  event.detail = FailureDetail::kOverflow;
  event.error_number = 0;
  event.limit_name[0] = '\0';
  event.frame_count = 0;
  EXPECT_EQ(Text(event),
            "#17 calloc of 1000 bytes, alignment 4096 returned_null after 1 "
            "attempt: Threshold/overflow (thread 4711 \"a\\u001b[2J\")\n");
}

TEST(FailureText, MappingsAreNoBytes) {
  FailureEvent event = Event();
  event.detail = FailureDetail::kMaxMapCount;
  event.error_number = 99;
  std::strcpy(event.limit_name, "vm.max_map_count");
  event.limit_value = 65530;
  event.limit_use = 65530;
  event.limit_needed = 1;
  EXPECT_NE(Text(event).find("mmap of 2.0 MiB: error 99; vm.max_map_count "
                             "is 65530, in use 65530, needed 1\n"),
            std::string::npos);
}

TEST(FailureText, WritesTheRingOldestFirst) {
  FailureRing ring;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const auto written = [&] {
    WriteFailures(ring, ends[1]);
    char buffer[65536];
    const ssize_t bytes = read(ends[0], buffer, sizeof(buffer));
    return std::string(buffer, bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
  };
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(written(), "hakmem: 0 failures in process " + process + "\n");
  FailureEvent event = Event();
  event.frame_count = 0;
  event.error_number = 0;
  event.limit_name[0] = '\0';
  ring.Record(event);
  EXPECT_EQ(
      written().find("hakmem: 1 failure in process " + process + ":\n#1 "), 0u);
  for (int i = 0; i < 299; ++i) ring.Record(event);
  const std::string all = written();
  EXPECT_EQ(all.find("hakmem: 300 failures in process " + process +
                     ", of which the last 256:\n#45 "),
            0u);
  EXPECT_LT(all.find("#45 "), all.find("#300 "));
  EXPECT_EQ(all.find("#44 "), std::string::npos);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace hakmem
