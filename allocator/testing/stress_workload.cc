#include "allocator/testing/stress_workload.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace hakmem::stress {
namespace {

using Clock = std::chrono::steady_clock;

class Workload {
 public:
  Workload(const Options& options, Target& target,
           const std::atomic<bool>& stop)
      : options_(options),
        target_(target),
        stop_(stop),
        budget_(options.max_bytes) {
    for (unsigned i = 0; i < options_.threads; ++i) {
      lanes_.push_back(
          std::make_unique<Lane>(options_, i, target_, budget_, exchange_));
    }
    ended_.reserve(options_.threads);
    ended_seen_.reserve(options_.threads);
  }

  Outcome Run() {
    std::vector<std::thread> threads;
    threads.reserve(lanes_.size());
    for (auto& lane : lanes_) threads.push_back(StartLife(*lane));
    Supervise(threads);
    exchange_.Drain([this](const Block& block) { lanes_[0]->Retire(block); });
    for (auto& lane : lanes_) lane->RetireAll();
    target_.LeaveThread();
    Outcome outcome;
    for (const auto& lane : lanes_) outcome.counters.Add(lane->counters());
    outcome.peak_bytes = budget_.peak();
    outcome.seconds =
        std::chrono::duration<double>(Clock::now() - start_).count();
    return outcome;
  }

 private:
  static constexpr std::uint64_t kNoBound =
      std::numeric_limits<std::uint64_t>::max();

  // Asked by each thread after each step.
  bool IsOver() const {
    return stop_.load(std::memory_order_relaxed) ||
           (options_.seconds > 0 &&
            std::chrono::duration<double>(Clock::now() - start_).count() >=
                options_.seconds);
  }

  std::uint64_t LaneBound() const {
    return options_.operations == 0
               ? kNoBound
               : std::max<std::uint64_t>(options_.operations / options_.threads,
                                         1);
  }

  // One thread's life on the lane: the blocks it leaves in the table are freed
  // by the lane's later threads, after this one has exited.
  std::thread StartLife(Lane& lane) {
    ++lane.counters().threads;
    const std::uint64_t begin = lane.counters().operations;
    std::uint64_t end = LaneBound();
    if (options_.life_operations != 0) {
      end = std::min(
          end, begin + lane.random().Between(1, 2 * options_.life_operations));
    }
    return StartThread(lane, [this, &lane, end] {
      while (lane.counters().operations < end && !IsOver()) lane.Step();
      target_.LeaveThread();
      const std::lock_guard lock(mutex_);
      ended_.push_back(&lane);
      changed_.notify_one();
    });
  }

  // A thread needs memory, too. When there is none, and that is allowed, the
  // lane gives up what it holds.
  template <typename Work>
  static std::thread StartThread(Lane& lane, Work work) {
    while (true) {
      try {
        return std::thread(work);
      } catch (const std::bad_alloc&) {
        lane.OnNoThread();
      } catch (const std::system_error&) {
        lane.OnNoThread();
      }
      lane.RetireAll();
      std::this_thread::yield();
    }
  }

  // Replaces each thread that has ended, until a bound is reached; then joins
  // all of them.
  void Supervise(std::vector<std::thread>& threads) {
    std::size_t running = threads.size();
    while (running != 0) {
      ended_seen_.clear();
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !ended_.empty(); });
        ended_.swap(ended_seen_);
      }
      for (Lane* lane : ended_seen_) {
        std::thread& thread = threads[IndexOf(*lane)];
        thread.join();
        if (IsOver() || lane->counters().operations >= LaneBound()) {
          --running;
        } else {
          thread = StartLife(*lane);
        }
      }
    }
  }

  std::size_t IndexOf(const Lane& lane) const {
    return static_cast<std::size_t>(
        std::find_if(lanes_.begin(), lanes_.end(),
                     [&](const auto& other) { return other.get() == &lane; }) -
        lanes_.begin());
  }

  const Clock::time_point start_ = Clock::now();
  const Options& options_;
  Target& target_;
  const std::atomic<bool>& stop_;
  Budget budget_;
  Exchange exchange_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lane*> ended_;  // guarded by mutex_
  // The supervisor's; both keep their capacity, so that neither allocates.
  std::vector<Lane*> ended_seen_;
};

}  // namespace

Outcome RunStress(const Options& options, Target& target,
                  const std::atomic<bool>& stop) {
  return Workload(options, target, stop).Run();
}

}  // namespace hakmem::stress
