// Inputs being read into one analysis.
#ifndef HAKMEM_TOOLS_HAKMEM_SESSION_H_
#define HAKMEM_TOOLS_HAKMEM_SESSION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/hakmem/analysis.h"
#include "tools/hakmem/failure_reader.h"
#include "tools/hakmem/report.h"

namespace hakmem::tools {

class Session {
 public:
  // Called for each failure, with the index of its cause.
  using OnFailure = std::function<void(const Record&, std::size_t cause)>;

  explicit Session(OnFailure on_failure = nullptr);

  // Returns the input's index.
  std::size_t AddInput(std::string name);

  void Add(std::size_t input, std::string_view bytes);
  // What is left of the input is its last line.
  void Finish(std::size_t input);
  // The input cannot be read, or no further.
  void Fail(std::size_t input, std::string error);

  const Analysis& analysis() const { return analysis_; }
  const std::vector<Input>& inputs() const { return inputs_; }

  // Whether everything was read, and all of it could be understood.
  bool Complete() const;

 private:
  void OnRecord(std::size_t input, const Record& record);
  void OnProblem(std::size_t input, const Problem& problem);
  void Count(std::size_t input);

  OnFailure on_failure_;
  Analysis analysis_;
  std::vector<Input> inputs_;
  std::vector<std::unique_ptr<FailureReader>> readers_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_SESSION_H_
