// The end of each line that the library writes unasked: which process it was.
//
// Owns: the program's name and the process's number. Called by: whatever says
// something that the program did not ask for; frontend and process, which know
// both. Thread-safety: the notes while there is one thread; the rest any
// thread, signal handlers included; nothing allocates.
//
// Under a filter of system calls nobody asks: then it is the number that was
// noted.
#ifndef HAKMEM_ALLOCATOR_BASE_LINE_END_H_
#define HAKMEM_ALLOCATOR_BASE_LINE_END_H_

#include <cstddef>
#include <string_view>

namespace hakmem {

// `name` stays where it is.
void NoteProgram(const char* name);
// 0: not known.
void NoteProcessId(int process_id);
int NotedProcessId();

// " (perl, process 1234)\n", as far as it is known. Small: reports on small
// stacks have it, too.
class LineEnd {
 public:
  LineEnd();
  std::string_view text() const { return {text_, length_}; }

 private:
  void Add(std::string_view text);

  char text_[96];
  std::size_t length_ = 0;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_BASE_LINE_END_H_
