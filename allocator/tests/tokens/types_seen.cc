// Says of each way to allocate whether the compiler passes the block's type:
// "data" or "pointers", by where hardened puts it, or "none".
//
// To be compiled with clang's -fsanitize=alloc-token and to run with
// HAKMEM_PARTITIONS=3. types_seen_test.py does both.
#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/tests/opaque.h"
#include "allocator/tests/tokens/token_calls.h"

namespace {

using hakmem::Opaque;

struct Data {
  int numbers[10];
};
struct Object {
  void* pointer;
  int number;
};
struct Virtual {
  virtual ~Virtual() = default;
  int number = 0;
};
struct Tail {
  Tail* next;
  char bytes[];
};
struct Functor {
  Data data;
  void** place;
  int operator()() { return *place = this, data.numbers[0]; }
};

std::set<std::uintptr_t> g_data;
std::set<std::uintptr_t> g_pointers;

std::uintptr_t SuperSlabOf(const void* block) {
  return reinterpret_cast<std::uintptr_t>(block) >> 21;
}

// Blocks whose type is known, of each size that is used below.
void Learn() {
  for (const std::size_t size : {16UL, 40UL, 100UL, 900UL, 5000UL}) {
    for (int i = 0; i < 8; ++i) {
      g_data.insert(
          SuperSlabOf(__alloc_token_malloc(size, hakmem::kDataToken)));
      g_pointers.insert(
          SuperSlabOf(__alloc_token_malloc(size, hakmem::kPointerToken)));
      // By the fast ABI, of eight tokens.
      g_pointers.insert(SuperSlabOf(__alloc_token_7_malloc(size)));
    }
  }
}

void Say(const char* what, const void* block) {
  const std::uintptr_t place = SuperSlabOf(Opaque(block));
  printf("| %s | %s |\n", what,
         g_data.count(place) != 0       ? "data"
         : g_pointers.count(place) != 0 ? "pointers"
                                        : "none");
}

__attribute__((noinline)) void* Wrapper(std::size_t size) {
  return malloc(size);
}

void SayOfC(std::size_t n) {
  Say("`malloc(sizeof(data))`", malloc(sizeof(Data)));
  Say("`malloc(sizeof(object))`", malloc(sizeof(Object)));
  auto* const data = static_cast<Data*>(malloc(n));
  Say("`(data*)malloc(n)`", data);
  auto* const object = static_cast<Object*>(malloc(n));
  Say("`(object*)malloc(n)`", object);
  void* const plain = malloc(n);
  Say("`malloc(n)`", plain);
  Say("`malloc(n * sizeof(object))`", malloc(n * sizeof(Object)));
  Say("`malloc(sizeof(object) + n)`", malloc(sizeof(Tail) + n));
  Say("`calloc(n, sizeof(object))`", calloc(n, sizeof(Object)));
  Say("`realloc(NULL, n * sizeof(object))`",
      realloc(Opaque(static_cast<void*>(nullptr)), n * sizeof(Object)));
  Say("`reallocarray(NULL, n, sizeof(object))`",
      reallocarray(Opaque(static_cast<void*>(nullptr)), n, sizeof(Object)));
  Say("`aligned_alloc(64, sizeof(object))`",
      aligned_alloc(64, 4 * sizeof(Object)));
  void* placed = nullptr;
  if (posix_memalign(&placed, 64, sizeof(Object)) != 0) abort();
  Say("`posix_memalign`", placed);
  Say("`strdup`", strdup(Opaque("text")));
  Say("a function that calls `malloc`", Wrapper(sizeof(Object)));
}

void SayOfOperators(std::size_t n) {
  Say("`new data`", Opaque(new Data));
  Say("`new object`", Opaque(new Object));
  Say("`new` of what has virtual functions", Opaque(new Virtual));
  Say("`new char[n]`", Opaque(new char[n]));
  Say("`new object[n]`", Opaque(new Object[n]));
}

void SayOfContainers(std::size_t n) {
  const std::string text(n, 'x');
  Say("`std::string` of n", text.data());
  std::string longer;
  for (std::size_t i = 0; i < n; ++i) longer.push_back('x');
  Say("`std::string`, grown", longer.data());
  const std::vector<Data> data(n);
  Say("`std::vector<data>(n)`", data.data());
  const std::vector<Object> objects(n);
  Say("`std::vector<object>(n)`", objects.data());
  std::vector<Object*> pointers;
  pointers.push_back(nullptr);
  Say("`std::vector<object*>`, grown", pointers.data());
  std::map<int, int> map;
  Say("`std::map<int, int>`", &map[1]);
  std::unordered_map<int, int> hashed;
  Say("`std::unordered_map<int, int>`", &hashed[1]);
  std::list<int> list(1);
  Say("`std::list<int>`", &list.front());
  const auto unique = std::make_unique<Object>();
  Say("`std::make_unique<object>`", unique.get());
  const auto shared = std::make_shared<Data>();
  Say("`std::make_shared<data>`", shared.get());
  void* place = nullptr;
  std::function<int()> function = Functor{{}, &place};
  function();
  Say("`std::function`, what it holds", place);
}

}  // namespace

int main() {
  Learn();
  const std::size_t n = Opaque(std::size_t{60});
  SayOfC(n);
  SayOfOperators(n);
  SayOfContainers(n);
  return 0;
}
