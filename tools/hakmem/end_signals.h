// A pause of a command, which signals may end.
#ifndef HAKMEM_TOOLS_HAKMEM_END_SIGNALS_H_
#define HAKMEM_TOOLS_HAKMEM_END_SIGNALS_H_

#include <csignal>
#include <initializer_list>

#include "absl/time/time.h"

namespace hakmem::tools {

// From its construction on the signals do nothing but end pauses: none is lost
// that comes between two.
class EndSignals {
 public:
  explicit EndSignals(std::initializer_list<int> signals);
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // True: a signal came, before the time was over.
  bool ComeWithin(absl::Duration time) const;

 private:
  sigset_t signals_;
  sigset_t before_;
};

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_END_SIGNALS_H_
