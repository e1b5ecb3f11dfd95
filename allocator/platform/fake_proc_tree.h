// A folder of files that stands for /, with /proc and /sys as a test wants
// them.
//
// Owns: the folder, which goes with the object. Called by: tests.
// Thread-safety: none.
#ifndef HAKMEM_ALLOCATOR_PLATFORM_FAKE_PROC_TREE_H_
#define HAKMEM_ALLOCATOR_PLATFORM_FAKE_PROC_TREE_H_

#include <string>

#include "allocator/platform/proc_reader.h"

namespace hakmem {

class FakeProcTree {
 public:
  FakeProcTree();
  ~FakeProcTree();
  FakeProcTree(const FakeProcTree&) = delete;
  FakeProcTree& operator=(const FakeProcTree&) = delete;

  // Makes or replaces the file `path` ("/proc/self/maps"), folders included.
  void Write(const std::string& path, const std::string& text);
  // The same file, if there is one, is gone.
  void Remove(const std::string& path);

  // For code that reads the files; while this object lives.
  ProcReader files() const { return ProcReader(root_.c_str()); }

 private:
  std::string root_;
};

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_PLATFORM_FAKE_PROC_TREE_H_
