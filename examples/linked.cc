// A program linked with hakmem: `malloc = "//allocator:hakmem"` in its BUILD
// rule is all it takes; the public header is for asking hakmem about itself.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "allocator/hakmem.h"

namespace {

void PrintRoute(const char* name, const hakmem_route_statistics& route) {
  std::printf("%-5s %8llu calls %12llu bytes\n", name,
              static_cast<unsigned long long>(route.allocations),
              static_cast<unsigned long long>(route.bytes));
}

}  // namespace

int main() {
  std::vector<std::string> words;
  words.reserve(10'000);  // Span
  for (int i = 0; i < 10'000; ++i) {
    words.emplace_back(static_cast<std::size_t>(i) + 32, 'x');  // Tiny, Pool
  }
  void* const film = std::malloc(std::size_t{512} << 20);  // Huge
  if (film == nullptr) {
    std::fprintf(stderr, "no memory for the film\n");
    return 1;
  }
  std::printf("%zu words, and a film at %p\n", words.size(), film);

  hakmem_statistics statistics;
  hakmem_get_statistics(&statistics, sizeof(statistics));
  std::printf("hakmem %s, %s\n", hakmem_version(), hakmem_variant());
  PrintRoute("tiny", statistics.tiny);
  PrintRoute("pool", statistics.pool);
  PrintRoute("span", statistics.span);
  PrintRoute("huge", statistics.huge);
  std::printf("mapped %llu bytes, %llu failures\n",
              static_cast<unsigned long long>(statistics.mapped_bytes),
              static_cast<unsigned long long>(statistics.failures));
  std::free(film);
}
