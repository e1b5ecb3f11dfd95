// A library that a test loads and unloads: it allocates while it is loaded, on
// call and while it is unloaded.

#include <cstdlib>
#include <string>

namespace {

struct AllocatesInItsLife {
  AllocatesInItsLife() : text(500, 'x'), block(std::malloc(3000)) {}
  ~AllocatesInItsLife() { std::free(block); }
  std::string text;
  void* block;
};

AllocatesInItsLife g_allocates_in_its_life;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* PluginNew(std::size_t size) {
  return std::malloc(size);
}

__attribute__((visibility("default"))) void PluginDelete(void* block) {
  std::free(block);
}

}  // extern "C"
