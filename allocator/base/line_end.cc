#include "allocator/base/line_end.h"

#include <sys/syscall.h>

#include <cstdint>
#include <cstring>

#include "allocator/base/call_filter.h"
#include "allocator/base/compiler.h"
#include "allocator/base/raw_print.h"
#include "allocator/base/relaxed.h"
#include "allocator/base/system_call.h"

namespace hakmem {
namespace {

constexpr std::size_t kMaxNameBytes = 60;

// Written while there is one thread; read by all.
constinit const char* g_program = nullptr;
// By who looks for a filter, and in a fork's child; read by all.
HAK_AT_FORK constinit Relaxed<int> g_process_id;

int KnownProcessId() {
  const bool may_ask =
      g_filter.load(std::memory_order_relaxed) == Filter::kNone;
  return may_ask ? static_cast<int>(SystemCall(SYS_getpid)) : NotedProcessId();
}

}  // namespace

void NoteProgram(const char* name) { g_program = name; }
void NoteProcessId(int process_id) { g_process_id = process_id; }
int NotedProcessId() { return g_process_id; }

LineEnd::LineEnd() {
  const std::string_view name =
      g_program == nullptr
          ? "hakmem"
          : std::string_view(g_program, strnlen(g_program, kMaxNameBytes));
  Add(" (");
  for (const char byte : name) text_[length_++] = PlainByte(byte);
  if (const int process_id = KnownProcessId(); process_id != 0) {
    Add(", process ");
    Add(DigitBuffer(static_cast<std::uint64_t>(process_id), 10).text());
  }
  Add(")\n");
}

void LineEnd::Add(std::string_view text) {
  std::memcpy(text_ + length_, text.data(), text.size());
  length_ += text.size();
}

}  // namespace hakmem
