// Has the attacker's bytes where an object has a pointer to a function, and the
// program calls the function.
// attack reused: an object is freed, then buffers come
// expect reused: succeeds
// attack reused_typed: the same, with allocation tokens
// expect reused_typed: succeeds
// expect[hardened debug] reused_typed: prevented
// attack overflow: a buffer before an object is written past its end
// expect overflow: succeeds
// attack overflow_typed: the same, with allocation tokens
// expect overflow_typed: succeeds
// expect[hardened debug] overflow_typed: prevented
#include "allocator/tests/attacks/attack.h"

// What clang calls with -fsanitize=alloc-token; absent from most allocators.
extern "C" __attribute__((weak)) void* __alloc_token_malloc(std::size_t size,
                                                            std::size_t token);

namespace {

using namespace hakmem;

// Hashes of two types, the second of which holds pointers.
constexpr std::size_t kDataToken = 0x5bd1e995a3c59ac3;
constexpr std::size_t kPointerToken = 0xc3a5c85c97cb3127;

struct Object {
  void (*method)();
  char data[40];
};
constexpr int kObjects = 2000;
constexpr int kBuffers = 100'000;
Object* g_objects[kObjects];
char* g_buffers[kBuffers];

void Harmless() {}
// Where the attacker wants to get to.
void Reached() { Succeeded(); }

char* AllocateTyped(std::size_t size, std::size_t token, bool typed) {
  if (!typed || __alloc_token_malloc == nullptr) return Allocate(size);
  char* const block =
      static_cast<char*>(Opaque(__alloc_token_malloc(size, token)));
  if (block == nullptr) Failed("no memory");
  return block;
}

Object* MakeObject(bool typed) {
  auto* const object = reinterpret_cast<Object*>(
      AllocateTyped(sizeof(Object), kPointerToken, typed));
  object->method = Harmless;
  return object;
}

// What the attacker sends to the program.
void Receive(char* buffer, std::size_t bytes) {
  for (std::size_t i = 0; i + sizeof(std::uintptr_t) <= bytes;
       i += sizeof(std::uintptr_t)) {
    StoreWord(buffer + i, reinterpret_cast<std::uintptr_t>(&Reached));
  }
}

void CallMethod(Object* object) {
  void (*const method)() = Opaque(object)->method;
  // Nothing else lies there but zeros.
  if (method != nullptr) method();
}

[[noreturn]] void Reuse(bool typed) {
  for (Object*& object : g_objects) object = MakeObject(typed);
  for (Object* object : g_objects) Free(object);
  for (char*& buffer : g_buffers) {
    buffer = AllocateTyped(sizeof(Object), kDataToken, typed);
    Receive(buffer, sizeof(Object));
  }
  for (Object* object : g_objects) CallMethod(object);
  Failed("no buffer lies where an object was");
}

[[noreturn]] void Overflow(bool typed) {
  for (int i = 0; i < kObjects; ++i) {
    g_buffers[i] = AllocateTyped(sizeof(Object), kDataToken, typed);
    g_objects[i] = MakeObject(typed);
  }
  // One that has an object behind it, if any has.
  std::sort(g_buffers, g_buffers + kObjects);
  std::sort(g_objects, g_objects + kObjects);
  for (char* buffer : g_buffers) {
    if (buffer == nullptr) break;
    Object** const behind = std::upper_bound(g_objects, g_objects + kObjects,
                                             reinterpret_cast<Object*>(buffer));
    if (behind == g_objects + kObjects) continue;
    const auto distance =
        static_cast<std::size_t>(reinterpret_cast<char*>(*behind) - buffer);
    if (distance > 2 * sizeof(Object)) continue;
    Receive(buffer, distance + sizeof(Object::method));
    CallMethod(*behind);
  }
  Failed("no object lies behind a buffer");
}

}  // namespace

int main(int, char** argv) {
  Begin();
  if (Is(argv[1], "reused")) Reuse(false);
  if (Is(argv[1], "reused_typed")) Reuse(true);
  if (Is(argv[1], "overflow")) Overflow(false);
  if (Is(argv[1], "overflow_typed")) Overflow(true);
  abort();
}
