#include "allocator/heap/parcel.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace hakmem {
namespace {

TEST(ParcelStackTest, IsTakenWholeNewestFirst) {
  ParcelStack stack;
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.TakeAll(), nullptr);
  Parcel parcels[3] = {};
  for (Parcel& parcel : parcels) stack.Push(&parcel);
  EXPECT_FALSE(stack.empty());
  Parcel* taken = stack.TakeAll();
  EXPECT_TRUE(stack.empty());
  for (int i = 2; i >= 0; --i) {
    EXPECT_EQ(taken, &parcels[i]);
    taken = taken->next;
  }
  EXPECT_EQ(taken, nullptr);
  EXPECT_EQ(stack.TakeAll(), nullptr);
}

// Senders push numbered parcels, whose empty shells come back on a stack of
// their own, as mailboxes and returned parcels do.
class Sender {
 public:
  Sender(HeapId id, int shells) : id_(id) {
    for (int i = 0; i < shells; ++i) {
      shells_.push_back(std::make_unique<Parcel>());
      home.Push(shells_.back().get());
    }
  }

  void Send(ParcelStack& mailbox, std::uint32_t parcels) {
    Parcel* free = nullptr;
    for (std::uint32_t number = 0; number < parcels; ++number) {
      while (free == nullptr) {
        free = home.TakeAll();
        if (free == nullptr) std::this_thread::yield();
      }
      Parcel* parcel = free;
      free = parcel->next;
      parcel->home = id_;
      parcel->count = number;
      // The sender's writes must be seen by the taker.
      parcel->blocks[number % Parcel::kCapacity] = parcel;
      mailbox.Push(parcel);
    }
    while (free != nullptr) {
      Parcel* parcel = free;
      free = parcel->next;
      home.Push(parcel);
    }
  }

  ParcelStack home;

 private:
  HeapId id_;
  std::vector<std::unique_ptr<Parcel>> shells_;
};

TEST(ParcelStackTest, LosesAndDoublesNothingAmongThreads) {
  constexpr HeapId kSenders = 3;
  constexpr int kTakers = 2;
  constexpr std::uint32_t kParcels = 20'000;
  ParcelStack mailbox;
  std::vector<std::unique_ptr<Sender>> senders;
  for (HeapId id = 0; id < kSenders; ++id) {
    senders.push_back(std::make_unique<Sender>(id, 64));
  }
  std::vector<std::vector<std::atomic<int>>> seen;
  for (HeapId id = 0; id < kSenders; ++id) seen.emplace_back(kParcels);
  std::atomic<std::uint32_t> received{0};

  std::vector<std::thread> threads;
  for (HeapId id = 0; id < kSenders; ++id) {
    threads.emplace_back([&, id] { senders[id]->Send(mailbox, kParcels); });
  }
  for (int taker = 0; taker < kTakers; ++taker) {
    threads.emplace_back([&] {
      while (received.load() < kSenders * kParcels) {
        Parcel* parcel = mailbox.TakeAll();
        if (parcel == nullptr) std::this_thread::yield();
        while (parcel != nullptr) {
          Parcel* next = parcel->next;
          const std::uint32_t number = parcel->count;
          EXPECT_EQ(parcel->blocks[number % Parcel::kCapacity], parcel);
          seen[parcel->home][number].fetch_add(1);
          received.fetch_add(1);
          senders[parcel->home]->home.Push(parcel);
          parcel = next;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(mailbox.empty());
  for (const auto& numbers : seen) {
    for (const auto& times : numbers) ASSERT_EQ(times.load(), 1);
  }
}

}  // namespace
}  // namespace hakmem
