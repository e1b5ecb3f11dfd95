// A program with a malloc of its own: a pool that is never given back. With an
// argument it also asks for an aligned block, which is not its own's business.

#include <malloc.h>
#include <string.h>

#include <cstddef>

namespace {

constexpr std::size_t kPoolBytes = 1 << 20;
alignas(16) char pool[kPoolBytes];
std::size_t used = 0;

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  const std::size_t rounded = (size + 15) / 16 * 16;
  if (rounded < size || rounded > kPoolBytes - used) return nullptr;
  used += rounded;
  return pool + used - rounded;
}

// The pool is zero, and nothing is used twice.
void* calloc(std::size_t count, std::size_t size) {
  return size != 0 && count > kPoolBytes / size ? nullptr
                                                : malloc(count * size);
}

void* realloc(void* old, std::size_t size) {
  void* const block = malloc(size);
  if (block == nullptr || old == nullptr) return block;
  const std::size_t held = static_cast<std::size_t>(static_cast<char*>(block) -
                                                    static_cast<char*>(old));
  memmove(block, old, held < size ? held : size);
  return block;
}

void free(void* /*block*/) {}

}  // extern "C"

int main(int argc, char** /*argv*/) {
  if (malloc(100) == nullptr) return 1;
  return argc > 1 && memalign(64, 100) == nullptr ? 1 : 0;
}
