// A memory cgroup of our own, where the machine lets us make one.
#ifndef HAKMEM_TOOLS_PROVOKE_CGROUP_H_
#define HAKMEM_TOOLS_PROVOKE_CGROUP_H_

#include <cstddef>
#include <string>

namespace hakmem::provoke {

class Cgroup {
 public:
  // Makes one that may use so many bytes, below or beside this process's own.
  explicit Cgroup(std::size_t limit_bytes);
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup() { Remove(); }

  // Why there is none; empty when there is.
  const std::string& problem() const { return problem_; }

  // Moves the calling process into it; 0, or errno.
  int Join() const;
  // How many bytes it uses.
  long long UseBytes() const;
  // Only once no process is in it.
  void Remove();

 private:
  bool TryMake(const std::string& parent, const char* limit_file,
               std::size_t limit_bytes);

  std::string folder_;
  bool second_version_ = false;
  std::string problem_;
};

}  // namespace hakmem::provoke

#endif  // HAKMEM_TOOLS_PROVOKE_CGROUP_H_
