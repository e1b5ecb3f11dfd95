// Writes to a freed block and ends, or with the argument "child" has a child of
// a fork do both.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int, char** argv) {
  printf("not lost\n");
  if (strcmp(argv[1], "child") == 0 && fork() != 0) {
    int status = 0;
    wait(&status);
    fflush(stdout);
    _exit(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  char* volatile block = static_cast<char*>(malloc(40));
  free(block);
  block[8] = 'A';
}
