#include "allocator/platform/fake_proc_tree.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "allocator/base/check.h"

namespace hakmem {

FakeProcTree::FakeProcTree() {
  std::string name =
      (std::filesystem::temp_directory_path() / "fake_proc_XXXXXX").string();
  HAK_CHECK(mkdtemp(name.data()) != nullptr);
  root_ = name;
}

FakeProcTree::~FakeProcTree() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

void FakeProcTree::Write(const std::string& path, const std::string& text) {
  const std::filesystem::path file = root_ + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  HAK_CHECK(out.good());
}

void FakeProcTree::Remove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(root_ + path, ignored);
}

}  // namespace hakmem
