// What private_runtime loads.

#include <cstddef>
#include <limits>
#include <new>

namespace {

std::size_t TooMuch() {
  std::size_t size = std::numeric_limits<std::size_t>::max() / 2 + 1;
  __asm__ volatile("" : "+r"(size));
  return size;
}

int g_handler_calls = 0;

}  // namespace

// Null, or what is wrong.
extern "C" __attribute__((visibility("default"))) const char* CheckOperators() {
  ::operator delete(::operator new(100));
  try {
    ::operator delete(::operator new(TooMuch()));
    return "operator new gave more than there is";
  } catch (const std::bad_alloc&) {
  }
  if (::operator new(TooMuch(), std::nothrow) != nullptr) {
    return "nothrow operator new gave more than there is";
  }
  std::set_new_handler([] {
    ++g_handler_calls;
    std::set_new_handler(nullptr);
  });
  try {
    ::operator delete(::operator new(TooMuch()));
    return "operator new gave more than there is";
  } catch (const std::bad_alloc&) {
  }
  return g_handler_calls == 1 ? nullptr : "the new-handler was not called";
}
