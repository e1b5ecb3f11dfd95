// A program of another project, whose malloc is hakmem. Its argument, if any,
// is the variant that it should run on.
#include <hakmem/hakmem.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "words.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words = Words(500);
  hakmem_statistics statistics;
  hakmem_get_statistics(&statistics, sizeof(statistics));
  std::printf("%zu words in %llu blocks of hakmem %s, %s\n", words.size(),
              static_cast<unsigned long long>(statistics.tiny.allocations),
              hakmem_version(), hakmem_variant());
  if (statistics.tiny.allocations < words.size()) return 1;
  return argc > 1 && std::strcmp(argv[1], hakmem_variant()) != 0 ? 1 : 0;
}
