#include "allocator/diag/fatal.h"

#include <string_view>

#include "allocator/base/raw_print.h"
#include "allocator/config/version.h"
#include "allocator/platform/process.h"

namespace hakmem {

namespace {

const char* CallName(PointerUse use) {
  switch (use) {
    case PointerUse::kFree:
      return "free";
    case PointerUse::kRealloc:
      return "realloc";
    case PointerUse::kUsableSize:
      return "malloc_usable_size";
  }
  return "unknown call";
}

// One report: the sentence is put together in `out`, Finish adds the details
// and writes all at once, so that reports of several threads do not mix.
class Report {
 public:
  explicit Report(const BlockReport& block) : block_(block) {
    out_.Text("hakmem: fatal: ");
  }

  Report& Text(std::string_view text) {
    out_.Text(text);
    return *this;
  }
  Report& Decimal(std::uint64_t value) {
    out_.Decimal(value);
    return *this;
  }
  Report& Hex(std::uint64_t value) {
    out_.Hex(value);
    return *this;
  }
  Report& Pointer(const void* pointer) {
    out_.Pointer(pointer);
    return *this;
  }
  // "invalid free of 0xP"
  Report& Invalid() {
    return Text("invalid ")
        .Text(CallName(block_.use))
        .Text(" of ")
        .Pointer(block_.pointer);
  }
  // "class 64", "span of 196608 bytes"
  Report& Kind() {
    switch (block_.route) {
      case Route::kTiny:
      case Route::kPool:
        return Text("class ").Decimal(block_.block_bytes);
      case Route::kSpan:
        Text("span of ");
        break;
      case Route::kHuge:
        Text("huge block of ");
        break;
    }
    return Decimal(block_.block_bytes).Text(" bytes");
  }
  // ", owner heap 3", or nothing
  Report& Owner() {
    if (block_.owner_heap == 0) return *this;
    return Text(", owner heap ").Decimal(block_.owner_heap);
  }
  // "block of class 64, owner heap 3", "span of 196608 bytes"
  Report& Block() {
    const bool of_class =
        block_.route == Route::kTiny || block_.route == Route::kPool;
    return Text(of_class ? "block of " : "").Kind().Owner();
  }

  [[noreturn]] void Finish() {
    Text("\n  in ").Text(CallName(block_.use)).Text(", thread ");
    out_.SignedDecimal(ThreadId());
    if (block_.caller_heap == 0) {
      Text(", no heap");
    } else {
      Text(", heap ").Decimal(block_.caller_heap);
    }
    Text("\n  hakmem ").Text(kVersion).Text(" ").Text(block_.variant);
    out_.Text(", process ").SignedDecimal(ProcessId()).Text("\n");
    WriteFd(kStderrFd, out_.text());
    AbortProcess();
  }

 private:
  const BlockReport& block_;
  RawPrinter out_;
};

}  // namespace

const char* RouteName(Route route) {
  switch (route) {
    case Route::kTiny:
      return "tiny";
    case Route::kPool:
      return "pool";
    case Route::kSpan:
      return "span";
    case Route::kHuge:
      return "huge";
  }
  return "unknown route";
}

void FatalFreedBlock(const BlockReport& block, const char* state) {
  Report report(block);
  if (block.use == PointerUse::kFree) {
    report.Text("double free of ");
  } else {
    report.Text(CallName(block.use)).Text(" of freed block ");
  }
  report.Pointer(block.pointer).Text(" (").Kind().Owner();
  report.Text(", state ").Text(state).Text(")").Finish();
}

void FatalInteriorPointer(const BlockReport& block, const void* start,
                          bool live) {
  const auto offset = reinterpret_cast<Address>(block.pointer) -
                      reinterpret_cast<Address>(start);
  Report report(block);
  report.Invalid().Text(" (interior pointer: ").Decimal(offset);
  report.Text(live ? " bytes into the live block "
                   : " bytes into the free block ");
  report.Pointer(start).Text(", ").Kind().Text(")").Finish();
}

void FatalNotABlock(const BlockReport& block) {
  Report report(block);
  report.Invalid().Text(" (inside hakmem's region, but not a block)").Finish();
}

void FatalForeignPointer(const BlockReport& block) {
  Report report(block);
  report.Invalid().Text(" (not hakmem's memory)").Finish();
}

void FatalWrongSize(const BlockReport& block, std::size_t given_bytes) {
  Report report(block);
  report.Text("wrong-size free of ").Pointer(block.pointer).Text(" (given ");
  report.Decimal(given_bytes).Text(" bytes, ").Block().Text(")").Finish();
}

void FatalWrongAlignment(const BlockReport& block,
                         std::size_t given_alignment) {
  Report report(block);
  report.Text("wrong-alignment free of ").Pointer(block.pointer);
  report.Text(" (given alignment ").Decimal(given_alignment).Text(", ");
  report.Block().Text(")").Finish();
}

void FatalDamagedHeader(const BlockReport& block, std::uint8_t found,
                        std::uint8_t expected) {
  Report report(block);
  report.Text("damaged header of ").Pointer(block.pointer).Text(" (found ");
  report.Hex(found).Text(", expected ").Hex(expected).Text("; ");
  report.Kind().Owner().Text(")").Finish();
}

}  // namespace hakmem
