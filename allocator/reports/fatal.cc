#include "allocator/reports/fatal.h"

#include <string_view>

#include "allocator/process/process.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/reports/misuse_report.h"
#include "allocator/reports/report_text.h"
#include "allocator/stacks/call_stack.h"

namespace hakmem {
namespace {

constexpr std::string_view kDoubleFreeHint =
    "Two owners free the same block, or one frees it on two paths; look at who "
    "copied the pointer.";
constexpr std::string_view kUseAfterFreeHint =
    "The pointer was kept after the block had been freed; set it to null where "
    "that happens.";
constexpr std::string_view kInteriorHint =
    "The pointer was moved on since it was allocated, or it is that of a "
    "member; free takes what malloc returned.";
constexpr std::string_view kNotABlockHint =
    "The pointer was computed wrongly, or the block was freed so long ago that "
    "its memory has gone back to the kernel.";
constexpr std::string_view kForeignHint =
    "It is on the stack, static, mapped, from another allocator, or no address "
    "at all: an uninitialised pointer, or one written over.";
constexpr std::string_view kSizeHint =
    "The object was deleted as another type than it was made as (a base class "
    "without a virtual destructor), or the size was not kept. "
    "HAKMEM_CHECK_SIZES=0 lets it pass.";
constexpr std::string_view kAlignmentHint =
    "The object was deleted as a type with another alignment than it was made "
    "as.";
constexpr std::string_view kDamageHint =
    "Something wrote to hakmem's own tables: a wild pointer in this program.";
constexpr std::string_view kReentry =
    "malloc or free called in the middle of malloc or free";
constexpr std::string_view kReentryHint =
    "By a signal handler: what one may call is listed in signal-safety(7); "
    "malloc is not. Or one left by longjmp what it had interrupted. Or what "
    "was written into libc's munmap or madvise allocates.";

}  // namespace

void FatalFreedBlock(const BlockReport& block, const char* state) {
  MisuseReport report(block);
  if (block.use == PointerUse::kFree) {
    report.Text("double free of ");
  } else {
    report.Text(UseName(block.use)).Text(" of freed block ");
  }
  report.Pointer(block.pointer).Text(" (").Kind().Owner();
  report.Text(", state ").Text(state).Text(")");
  report.Finish(block.use == PointerUse::kFree ? kDoubleFreeHint
                                               : kUseAfterFreeHint);
}

void FatalInteriorPointer(const BlockReport& block, const void* start,
                          bool live) {
  const auto offset = reinterpret_cast<Address>(block.pointer) -
                      reinterpret_cast<Address>(start);
  MisuseReport report(block);
  report.Invalid().Text(" (interior pointer: ").Decimal(offset);
  report.Text(live ? " bytes into the live block "
                   : " bytes into the free block ");
  report.Pointer(start).Text(", ").Kind().Text(")");
  report.Finish(kInteriorHint);
}

void FatalNotABlock(const BlockReport& block) {
  MisuseReport report(block);
  report.Invalid().Text(" (inside hakmem's region, but not a block)");
  report.Finish(kNotABlockHint);
}

void FatalForeignPointer(const BlockReport& block) {
  MisuseReport report(block);
  report.Invalid().Text(" (not hakmem's memory)");
  report.Finish(kForeignHint);
}

void FatalWrongSize(const BlockReport& block, std::size_t given_bytes) {
  MisuseReport report(block);
  report.Text("wrong-size free of ").Pointer(block.pointer).Text(" (given ");
  report.Decimal(given_bytes).Text(" bytes, ").Block().Text(")");
  report.Finish(kSizeHint);
}

void FatalWrongAlignment(const BlockReport& block,
                         std::size_t given_alignment) {
  MisuseReport report(block);
  report.Text("wrong-alignment free of ").Pointer(block.pointer);
  report.Text(" (given alignment ").Decimal(given_alignment).Text(", ");
  report.Block().Text(")");
  report.Finish(kAlignmentHint);
}

void FatalDamagedHeader(const BlockReport& block, std::uint8_t found,
                        std::uint8_t expected) {
  MisuseReport report(block);
  report.Text("damaged header of ").Pointer(block.pointer).Text(" (found ");
  report.Hex(found).Text(", expected ").Hex(expected).Text("; ");
  report.Kind().Owner().Text(")");
  report.FinishFatal(kDamageHint);
}

void FatalReentry(const char* variant) {
  NoteEnd();
  StartReport(kReentry);
  CallStack stack;
  CaptureProgramStack(stack);
  {
    ReportText text;
    text.AddSentence("fatal", kReentry);
    PrintThread("  in thread ", ThreadId(), text.Line());
    text.AddLine();
    text.AddStack("stack of this call", stack);
    text.Line().Text("  hint: ").Text(kReentryHint);
    text.AddLine();
    text.AddProduct(variant);
  }
  EndAfterMisuse();
}

}  // namespace hakmem
