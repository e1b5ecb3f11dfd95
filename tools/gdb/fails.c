/* Fails to allocate in ways that the gdb script's test knows. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The compiler must not see that these can only fail. */
static volatile size_t too_large = (size_t)1 << 60;
static void* volatile result;

__attribute__((noinline)) void allocate_too_much(void) {
  result = malloc(too_large);
}

__attribute__((noinline)) void all_is_done(void) { result = NULL; }

int main(void) {
  allocate_too_much();
  result = calloc(SIZE_MAX / 2, too_large);
  result = calloc(7, too_large / 8);
  all_is_done();
  return 0;
}
