#include "tools/provoke/mapping_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace hakmem::provoke {

bool RefuseLongMappings() {
  constexpr std::uint32_t kShortest = 512U << 20;
  constexpr std::uint32_t kLength = offsetof(seccomp_data, args[1]);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4),
      // The length's upper half, then the lower one.
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kLength + 4),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0, 3, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kLength),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kShortest, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
  };
  const sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                              .filter = filter};
  // By number: it stands for a kernel that refuses. Of a filter that the
  // program sets up by prctl hakmem would know, and ask the kernel for no
  // limits.
  return syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace hakmem::provoke
