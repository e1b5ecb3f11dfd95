// The library's own functions, as a program calls them, on the real kernel: a
// block is aligned, as long as it must be, zero where that was asked for, and
// nobody else's; what fails sets errno and makes one event; nothing else
// touches errno (c_symbols.inc, EN1 to EN3; jemalloc_symbols.inc, JE1, JE2).
//
// Header: not used.
// Records: op % 32 is the operation of `Do`; with who of 240 and more on a
// thread of its own, which ends. A block is chosen by a, a size by b. The heap
// is the process's, libFuzzer's blocks lie in it, too: a finding may need more
// than its input.

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "allocator/base/bits.h"
#include "allocator/base/check.h"
#include "allocator/base/route.h"
#include "allocator/base/units.h"
#include "allocator/config/heap_options.h"
#include "allocator/core/test_model_heap.h"
#include "allocator/hakmem.h"
#include "allocator/reports/misuse_policy.h"
#include "allocator/reports/report_text.h"
#include "fuzz/library_blocks.h"
#include "fuzz/library_calls.h"
#include "fuzz/library_model.h"
#include "fuzz/library_questions.h"
#include "fuzz/records.h"

namespace hakmem {
namespace {

class SymbolsRun {
 public:
  void Step(const Record& record) {
    if (record.who < 240) return Do(record);
    std::thread([&] { Do(record); }).join();
  }
  void Finish() {
    hakmem_set_failure_handler(nullptr, nullptr);
    model_.CheckAll();
    for (unsigned i = 0; !model_.empty(); ++i) blocks_.Free(model_.Pick(i), i);
  }

 private:
  void Do(const Record& record);
  void Use(const Record& record, void* block);
  void Reallocate(const Record& record, void* block, std::size_t size);
  void ReallocateArray(const Record& record, void* block);
  void ReallocateRounded(const Record& record, void* block, std::size_t size);
  void ResizeInPlace(const Record& record, void* block);
  void Copy(const Record& record, void* block);
  void Misuse(const Record& record, void* block);
  void Fork(const Record& record);

  LibraryModel blocks_;
  ModelHeap& model_ = blocks_.model();
  int forks_ = 0;
};

void SymbolsRun::Reallocate(const Record& record, void* block,
                            std::size_t size) {
  if (blocks_.full()) size %= kUnitBytes;
  const ModelHeap::Block old = model_.At(block);
  if (old.kind != BlockKind::kMalloc) return;
  // That frees it.
  if (size == 0) model_.Remove(block);
  blocks_.Begin();
  void* moved = record.who % 2 == 0
                    ? realloc(block, size)
                    : __alloc_token_realloc(block, size, TokenOf(record.who));
  if (size == 0) {
    HAK_CHECK(moved == nullptr);
    LibraryModel::EndQuiet();
    return;
  }
  blocks_.End(moved != nullptr, size, kMinAlignmentBytes);
  HAK_CHECK(moved != nullptr || size > old.usable);
  if (moved == nullptr) return;
  model_.Resize(block, moved, size, malloc_usable_size(moved));
}

// Half of the products do not fit into a word.
void SymbolsRun::ReallocateArray(const Record& record, void* block) {
  const ModelHeap::Block old = model_.At(block);
  if (old.kind != BlockKind::kMalloc) return;
  const bool overflows = record.b % 2 != 0;
  const std::size_t count =
      overflows ? std::size_t{1} << 32 | record.b / 64 : 7;
  const std::size_t size = overflows
                               ? std::size_t{1} << (32 + record.b / 2 % 32)
                               : record.b % kUnitBytes;
  if (!overflows && size == 0) return;
  blocks_.Begin();
  void* moved =
      record.who % 2 == 0
          ? reallocarray(block, count, size)
          : __alloc_token_reallocarray(block, count, size, TokenOf(record.who));
  HAK_CHECK((moved == nullptr) == overflows);
  blocks_.End(moved != nullptr, overflows ? ~std::size_t{0} : count * size,
              kMinAlignmentBytes);
  if (moved != nullptr) {
    model_.Resize(block, moved, count * size, malloc_usable_size(moved));
  }
}

void SymbolsRun::ReallocateRounded(const Record& record, void* block,
                                   std::size_t size) {
  const ModelHeap::Block old = model_.At(block);
  if (old.kind != BlockKind::kMalloc) return;
  if (blocks_.full()) size %= kUnitBytes;
  size = std::max<std::size_t>(size, 1);
  const bool zero = record.who % 2 != 0;
  const int flags = FlagsOf(record.who / 2U, zero);
  blocks_.Begin();
  void* moved = rallocx(block, size, flags);
  blocks_.End(moved != nullptr, size, AlignmentOfFlags(flags));
  if (moved == nullptr) return;
  const std::size_t usable = malloc_usable_size(moved);
  if (zero && usable > old.usable) {
    ModelHeap::CheckZero(static_cast<char*>(moved) + old.usable,
                         usable - old.usable);
  }
  blocks_.Resize(block, moved, size, AlignmentOfFlags(flags), usable);
}

// A block that stays as it is keeps the size that it was asked for with.
void SymbolsRun::ResizeInPlace(const Record& record, void* block) {
  const ModelHeap::Block old = model_.At(block);
  if (old.kind != BlockKind::kMalloc || old.size == 0) return;
  const std::size_t least =
      1 + old.usable / 2 + record.b % LibraryModel::kPageBytes;
  const bool zero = record.who % 2 != 0;
  const int flags = std::countr_zero(old.alignment) | (zero ? kZero : 0);
  blocks_.Begin();
  const std::size_t usable = xallocx(
      block, least, record.b / LibraryModel::kPageBytes % kUnitBytes, flags);
  LibraryModel::EndQuiet();
  HAK_CHECK_EQ(malloc_usable_size(block), usable);
  if (usable == old.usable) return;
  HAK_CHECK_GE(usable, least);
  if (zero && usable > old.usable) {
    ModelHeap::CheckZero(static_cast<char*>(block) + old.usable,
                         usable - old.usable);
  }
  blocks_.Resize(block, block, usable, old.alignment, usable);
}

// From the block and back: its content stays.
void SymbolsRun::Copy(const Record& record, void* block) {
  static char room[4 * kKiB];
  const std::size_t size = std::min(model_.At(block).size, sizeof(room) - 1);
  if (size == 0) return;
  char* const at = static_cast<char*>(block) + record.b % size;
  const std::size_t bytes = size - record.b % size;
  memcpy(room, at, bytes);
  switch (record.who % 4) {
    case 0:
      memset(at, 0x5a, bytes);
      memmove(at, room, bytes);
      break;
    case 1:
      HAK_CHECK(mempcpy(at, room, bytes) == at + bytes);
      break;
    default: {
      // As text, which ends where a byte is 0.
      const std::size_t length = strnlen(room, bytes);
      HAK_CHECK(stpncpy(at, room, length) == at + length);
      break;
    }
  }
  memcpy(at, room, bytes);
}

// A wrong call that the process survives: it is counted, and does nothing else.
void SymbolsRun::Misuse(const Record& record, void* block) {
  const ModelHeap::Block old = model_.At(block);
  if (old.size < 2) return;
  const std::size_t offset = 1 + record.b % (old.size - 1);
  char* const inside = static_cast<char*>(block) + offset;
  SetReportStacks(false);
  SetOnMisuse(OnMisuse::kLog);
  const std::uint64_t before = MisuseCount();
  std::uint64_t misuses = 1;
  switch (record.who % 6) {
    case 0:
      free(inside);
      break;
    case 1:
      HAK_CHECK(realloc(inside, 100) == nullptr);
      break;
    case 2:
      HAK_CHECK_EQ(malloc_usable_size(inside), 0U);
      break;
    case 3:
      free_aligned_sized(block, old.alignment, old.size + 2 * kUnitBytes);
      break;
    case 4:
      operator delete(inside);
      break;
    default:
      // One byte too many; what is written to a guarded block is not looked at.
      misuses = ChecksCopies() && !GuardsBlocks() ? 1 : 0;
      if (misuses != 0) memset(inside, 0, old.usable - offset + 1);
      break;
  }
  SetOnMisuse(OnMisuse::kAbort);
  HAK_CHECK_EQ(MisuseCount() - before, misuses);
}

// The child has all blocks, and can free and allocate.
void SymbolsRun::Fork(const Record& record) {
  if (++forks_ > 1) return;
  const pid_t child = fork();
  if (child == 0) {
    model_.CheckAll();
    for (unsigned i = record.a; !model_.empty(); ++i)
      blocks_.Free(model_.Pick(i), i);
    std::thread([&] { TakeAligned(blocks_, record, SizeOf(record.b)); }).join();
    TakePlain(blocks_, record, SizeOf(record.b));
    _exit(hakmem_check_heap() == 0 ? 0 : 1);
  }
  HAK_CHECK(child > 0);
  int status = 0;
  // libFuzzer has an alarm.
  HAK_CHECK_EQ(TEMP_FAILURE_RETRY(waitpid(child, &status, 0)), child);
  HAK_CHECK_EQ(status, 0);
}

void SymbolsRun::Do(const Record& record) {
  const std::size_t size = SizeOf(record.b);
  switch (record.op % 32) {
    case 0:
    case 1:
    case 2:
    case 3:
      return TakePlain(blocks_, record, size);
    case 4:
    case 5:
      return TakeAligned(blocks_, record, size);
    case 6:
    case 7:
      return TakeNew(blocks_, record, size);
    case 8:
    case 9:
      return TakeTyped(blocks_, record, size);
    case 10:
      return TakeRounded(blocks_, record, size);
    case 11:
      return AskAboutMemory(record, model_.live_bytes());
    case 12:
      return AskMallctl(record);
    case 13:
      return SetHandler(record);
    case 14:
      if (record.a % 16 == 0) {
        Fork(record);
      } else if (!model_.empty()) {
        Misuse(record, model_.Pick(record.a));
      }
      return;
    case 15:
      for (unsigned i = 0; i < record.a % 300U && size <= kMaxPoolBytes; ++i) {
        TakePlain(blocks_, record, size);
      }
      return;
    default:
      break;
  }
  if (!model_.empty()) Use(record, model_.Pick(record.a));
}

// A block that is there.
void SymbolsRun::Use(const Record& record, void* block) {
  const std::size_t size = SizeOf(record.b);
  switch (record.op % 16) {
    case 0:
    case 1:
      return Reallocate(record, block, size);
    case 2:
      return ReallocateArray(record, block);
    case 3:
      return ReallocateRounded(record, block, size);
    case 4:
      return ResizeInPlace(record, block);
    case 5:
      HAK_CHECK_EQ(malloc_usable_size(block), model_.At(block).usable);
      return Copy(record, block);
    case 6:
      for (unsigned i = 0; i < record.b % 300 && !model_.empty(); ++i) {
        blocks_.Free(model_.Pick(record.a), record.who);
      }
      return;
    default:
      return blocks_.Free(block, record.who);
  }
}

}  // namespace
}  // namespace hakmem

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  hakmem::Records input(data, size);
  hakmem::SymbolsRun run;
  hakmem::Record record;
  while (input.Next(record)) run.Step(record);
  run.Finish();
  return 0;
}
