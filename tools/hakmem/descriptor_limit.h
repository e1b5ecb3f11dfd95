// The limit on open files of a command that looks into many processes.
#ifndef HAKMEM_TOOLS_HAKMEM_DESCRIPTOR_LIMIT_H_
#define HAKMEM_TOOLS_HAKMEM_DESCRIPTOR_LIMIT_H_

#include <sys/resource.h>

namespace hakmem::tools {

// Each process that is looked into takes a descriptor.
inline void AllowAllDescriptors() {
  struct rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_DESCRIPTOR_LIMIT_H_
