// HAKMEM_CRASH_REPORT: what a crash has to do with hakmem's memory.
//
// Owns: nothing. Called by: the crash hook, in a signal handler.
// Thread-safety: any thread; no lock is waited for that its own thread could
// hold; nothing allocates; tables are read as report_sources.h says.
#ifndef HAKMEM_ALLOCATOR_REPORTS_CRASH_REPORT_H_
#define HAKMEM_ALLOCATOR_REPORTS_CRASH_REPORT_H_

#include "allocator/process/fault_hook.h"

namespace hakmem {

// Writes, on standard error:
//   hakmem: crash: SIGSEGV at 0xA: 4096 bytes past the end of block 0xS (…)
//     thread 1234, pc 0x…, sp 0x…, fp 0x…
//     and, as in misuse_report.h, the block, its neighbours and past, the stack
// or "hakmem: crash: SIGABRT" when there is no address.
void WriteCrashReport(const Fault& fault, const char* variant);

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_REPORTS_CRASH_REPORT_H_
