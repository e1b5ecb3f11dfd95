#include "tools/hakmem/fleet.h"

#include <chrono>
#include <mutex>

#include "tools/hakmem/top_report.h"

namespace hakmem::tools {

FleetView Fleet::Look() {
  const std::lock_guard lock(mutex_);
  began_ = Clock::now().time_since_epoch().count();
  FleetView view;
  // Nobody was asked for, so nobody can be missed.
  processes_.Look(view.rows).IgnoreError();
  view.forbidden = processes_.forbidden();
  began_ = 0;
  SortTop(TopOrder::kResident, view.rows);
  return view;
}

bool Fleet::IsStuckFor(std::chrono::seconds time) const {
  const Clock::rep began = began_;
  return began != 0 &&
         Clock::now() - Clock::time_point(Clock::duration(began)) >= time;
}

}  // namespace hakmem::tools
