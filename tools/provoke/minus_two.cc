// A program with a mistake: a length that is computed as -2 becomes a size.
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

// The text between the quotes, in a block of its own.
char* Unquoted(const char* text) {
  const std::size_t length =
      std::strlen(text) - 2;  // of "" it is 0, of nothing
  char* const copy = new char[length];
  std::memcpy(copy, text + 1, length);
  return copy;
}

}  // namespace

int main(int, char** argv) {
  std::puts(Unquoted(argv[1] == nullptr ? "" : argv[1]));
  return 0;
}
