// Passes each probe, with arguments that the test knows.
#include <malloc.h>

#include <cstddef>
#include <cstdlib>

namespace {

// The compiler must not see what becomes of them.
void* volatile g_block;
volatile std::size_t g_too_large = std::size_t{1} << 62;

}  // namespace

int main() {
  g_block = std::malloc(5000);  // a class that nothing has used yet
  // Longer than what threads keep.
  g_block = std::malloc(std::size_t{4} << 20);
  std::free(g_block);
  ::malloc_trim(0);
  g_block = std::malloc(g_too_large);
  return g_block == nullptr ? 0 : 1;
}
