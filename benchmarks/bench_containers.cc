// Containers of programs that grow element by element, eight side by side, each
// to MAX bytes and then anew:
//   vector    std::vector of numbers: new blocks by operator new, sized delete
//   string    std::string, to which words are appended
//   list      as an interpreter's: an array of references that is reallocated
//             an eighth larger, a small block for each element, taken off again
//             from its end
//   messages  as a protocol's: objects with text and numbers in them, written
//             to a buffer that doubles, then dropped as a whole
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "benchmarks/bench_support.h"

namespace {

using namespace hakmem::bench;

enum : std::uint64_t { kVector, kString, kList, kMessages };

constexpr std::size_t kSideBySide = 8;

class Vector {
 public:
  // Each of these adds something, and starts anew at `maximum` bytes.
  void Add(Random& random, std::size_t maximum) {
    if (numbers_.size() * sizeof(numbers_[0]) >= maximum) {
      // Not `= {}`, which assigns an empty list and keeps the block.
      numbers_ = std::vector<std::uint64_t>();
    }
    numbers_.push_back(random.Next());
  }

 private:
  std::vector<std::uint64_t> numbers_;
};

class String {
 public:
  void Add(Random& random, std::size_t maximum) {
    static constexpr char kWords[] = "a line of text that somebody wrote down";
    if (text_.size() >= maximum) {
      text_.clear();
      text_.shrink_to_fit();
    }
    text_.append(kWords, random.Between(1, sizeof(kWords) - 1));
  }

 private:
  std::string text_;
};

class List {
 public:
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (length_ > 0) Free(items_[--length_]);
    Free(items_);
  }

  // Grows to `maximum` and shrinks to nothing again, in turns.
  void Add(Random& random, std::size_t maximum) {
    if (length_ * sizeof(void*) >= maximum) shrinks_ = true;
    if (length_ == 0) shrinks_ = false;
    if (shrinks_) return Drop();
    if (length_ == room_) Resize(length_ + length_ / 8 + 4);
    items_[length_++] = AllocateTouched(random.Between(24, 56));
  }

 private:
  void Drop() {
    Free(items_[--length_]);
    if (length_ < room_ / 2) Resize(length_ + 4);
  }

  void Resize(std::size_t room) {
    const std::size_t size = room * sizeof(void*);
    items_ = static_cast<void**>(Check(std::realloc(items_, size), size));
    room_ = room;
  }

  void** items_ = nullptr;
  std::size_t length_ = 0;
  std::size_t room_ = 0;
  bool shrinks_ = false;
};

class Messages {
 public:
  void Add(Random& random, std::size_t maximum) {
    if (bytes_ >= maximum) Drop();
    auto message = std::make_unique<Message>();
    message->text.assign(random.Between(4, 120), 't');
    const std::size_t count = random.Below(24);
    for (std::size_t i = 0; i < count; ++i) {
      message->numbers.push_back(static_cast<std::uint32_t>(i));
    }
    bytes_ += message->text.size() + count * sizeof(std::uint32_t);
    messages_.push_back(std::move(message));
  }

 private:
  struct Message {
    std::uint64_t fields[4] = {};
    std::string text;
    std::vector<std::uint32_t> numbers;
  };

  void Drop() {
    std::string written;
    for (const auto& message : messages_) {
      written += message->text;
      for (const std::uint32_t number : message->numbers) {
        written.append(1, static_cast<char>(number));
      }
    }
    // Its bytes have been used, as far as the compiler knows.
    Free(std::memcpy(Allocate(written.size()), written.data(), written.size()));
    messages_.clear();
    bytes_ = 0;
  }

  std::vector<std::unique_ptr<Message>> messages_;
  std::size_t bytes_ = 0;
};

template <class Container>
Phase Measure(std::uint64_t iterations, std::uint64_t maximum,
              std::uint64_t seed) {
  Random random(seed);
  Container containers[kSideBySide];
  const auto work = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      containers[random.Below(kSideBySide)].Add(random, maximum);
    }
  };
  work(iterations / 8);
  Phase phase;
  work(iterations);
  phase.Stop();
  return phase;
}

Phase MeasureMode(std::uint64_t mode, std::uint64_t iterations,
                  std::uint64_t maximum, std::uint64_t seed) {
  switch (mode) {
    case kVector:
      return Measure<Vector>(iterations, maximum, seed);
    case kString:
      return Measure<String>(iterations, maximum, seed);
    case kList:
      return Measure<List>(iterations, maximum, seed);
    default:
      return Measure<Messages>(iterations, maximum, seed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t mode, iterations, maximum, seed;
  ReadArguments(argc, argv,
                {{"MODE", {"vector", "string", "list", "messages"}, &mode},
                 {"ITERATIONS", 10'000'000, &iterations},
                 {"MAX", 65'536, &maximum},
                 {"SEED", 1, &seed, 0}});
  Report(MeasureMode(mode, iterations, maximum, seed), iterations);
}
