// What others may have the process do, where HAKMEM_CONTROL allows it: `hakmem
// purge PID` and `hakmem option PID` (docs/statistics.md).
//
// Owns: the words of a command. Called by: the process's hooks; slow work and
// the helper thread, which obey. Thread-safety: any thread; ObeyControl with no
// lock held.
//
// Who may write to the process's memory writes a command's argument, then its
// request. The process looks at the request where it does slow work, and
// answers with a result, then with the same number as `done`.
//
// Invariants:
//   CM1: a request whose halves are not each other's complement is none: it is
//        being written.
//   CM2: one thread obeys a request, once.
#ifndef HAKMEM_ALLOCATOR_FRONTEND_CONTROL_H_
#define HAKMEM_ALLOCATOR_FRONTEND_CONTROL_H_

namespace hakmem {

// If the options allow commands, slow work looks for them from now on.
void WantControl();
void ObeyControl();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_FRONTEND_CONTROL_H_
