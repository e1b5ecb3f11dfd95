#include "tools/hakmem/session.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace hakmem::tools {

Session::Session(OnFailure on_failure) : on_failure_(std::move(on_failure)) {}

std::size_t Session::AddInput(std::string name) {
  const std::size_t index = inputs_.size();
  Input input;
  input.name = std::move(name);
  inputs_.push_back(std::move(input));
  readers_.push_back(std::make_unique<FailureReader>(
      [this, index](const Record& record) { OnRecord(index, record); },
      [this, index](const Problem& problem) { OnProblem(index, problem); }));
  return index;
}

void Session::Add(std::size_t input, std::string_view bytes) {
  readers_[input]->Add(bytes);
  Count(input);
}

void Session::Finish(std::size_t input) {
  readers_[input]->Finish();
  Count(input);
}

void Session::Fail(std::size_t input, std::string error) {
  inputs_[input].error = std::move(error);
}

bool Session::Complete() const {
  return std::ranges::all_of(inputs_, &Input::complete);
}

void Session::OnRecord(std::size_t input, const Record& record) {
  const std::size_t cause = analysis_.Add(input, record);
  if (cause != Analysis::kNone && on_failure_) on_failure_(record, cause);
}

void Session::OnProblem(std::size_t input, const Problem& problem) {
  Input& where = inputs_[input];
  ++where.problem_count;
  if (where.problems.size() < Input::kMaxProblems) {
    where.problems.push_back(problem);
  }
}

void Session::Count(std::size_t input) {
  inputs_[input].lines = readers_[input]->lines();
  inputs_[input].records = readers_[input]->records();
  inputs_[input].other_lines = readers_[input]->other_lines();
}

}  // namespace hakmem::tools
