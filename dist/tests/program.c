/* A program on hakmem: it allocates from two threads, and frees a block twice
 * if it is told to. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hakmem.h"

static void* work(void* blocks) {
  void** each = blocks;
  for (size_t i = 0; i < 1000; ++i) {
    each[i] = malloc(i * 37 + 1);
    if (each[i] == NULL) abort();
    memset(each[i], 1, i * 37 + 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  static void* blocks[1000];
  pthread_t thread;
  printf("%s %s\n", hakmem_version(), hakmem_variant());
  if (pthread_create(&thread, NULL, work, blocks) != 0) return 1;
  pthread_join(thread, NULL);
  for (size_t i = 0; i < 1000; ++i) free(blocks[i]);
  if (argc > 1 && strcmp(argv[1], "twice") == 0) {
    char* volatile block = malloc(100);
    free(block);
    free(block);
  }
  return 0;
}
