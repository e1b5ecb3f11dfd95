// Leaks from three places, and frees the rest.
#include <cstdlib>

extern "C" {

void* volatile g_kept[16];

__attribute__((noinline)) void LeakLarge() { g_kept[0] = malloc(300'000); }
__attribute__((noinline)) void LeakOne(int i) { g_kept[i] = new char[100]; }
__attribute__((noinline)) void LeakFromRealloc() {
  g_kept[10] = realloc(malloc(10), 2000);
}
}

int main() {
  LeakLarge();
  for (int i = 1; i <= 4; ++i) LeakOne(i);
  LeakFromRealloc();
  free(malloc(77));
}
