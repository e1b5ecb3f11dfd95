// A vector cannot grow: its own function, GrowIt and main called.

#include <new>
#include <vector>

__attribute__((noinline)) void GrowIt(std::vector<char>& bytes) {
  bytes.resize(bytes.size() + (8UL << 20));
  __asm__ volatile("" : : "r"(bytes.data()) : "memory");
}

int main() {
  std::vector<char> bytes;
  try {
    GrowIt(bytes);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return 1;
}
