// Work for a C++ compiler and, once compiled, for a malloc: templates and
// containers. Each part prints a line that follows from all it has built.
#include <algorithm>
#include <any>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

class Digest {
 public:
  void Add(const std::string& text) {
    for (const char c : text) {
      value_ = (value_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
  }
  void Add(std::uint64_t number) { Add(std::to_string(number)); }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 14695981039346656037ULL;
};

void Print(const char* name, const Digest& digest) {
  std::printf("%s %016llx\n", name,
              static_cast<unsigned long long>(digest.value()));
}

std::string Word(std::mt19937& random) {
  std::string word(1 + random() % 30, ' ');
  for (char& c : word) c = static_cast<char>('a' + random() % 26);
  return word;
}

template <typename Map>
Digest Maps(std::mt19937 random) {
  Map map;
  for (int i = 0; i < 60'000; ++i) {
    map[Word(random)].push_back(static_cast<int>(random() % 1000));
    if (i % 3 == 0) map.erase(map.begin());
  }
  std::map<std::string, std::vector<int>> sorted(map.begin(), map.end());
  Digest digest;
  for (const auto& [key, values] : sorted) {
    digest.Add(key);
    for (const int value : values)
      digest.Add(static_cast<std::uint64_t>(value));
  }
  return digest;
}

struct Node;
using Tree = std::variant<std::monostate, std::int64_t, std::string,
                          std::vector<Node>, std::map<std::string, Node>>;
struct Node {
  Tree value;
};

Node Grow(std::mt19937& random, int depth) {
  switch (depth == 0 ? random() % 3 : random() % 5) {
    case 0:
      return {std::monostate()};
    case 1:
      return {static_cast<std::int64_t>(random())};
    case 2:
      return {Word(random)};
    case 3: {
      std::vector<Node> children;
      for (unsigned i = 0; i < 6; ++i)
        children.push_back(Grow(random, depth - 1));
      return {std::move(children)};
    }
    default: {
      std::map<std::string, Node> children;
      for (unsigned i = 0; i < 6; ++i) {
        children.emplace(Word(random), Grow(random, depth - 1));
      }
      return {std::move(children)};
    }
  }
}

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

void Show(const Node& node, std::ostream& out) {
  std::visit(Overloaded{
                 [&](std::monostate) { out << "null"; },
                 [&](std::int64_t number) { out << number; },
                 [&](const std::string& text) { out << '"' << text << '"'; },
                 [&](const std::vector<Node>& children) {
                   out << '[';
                   for (const Node& child : children) Show(child, out << ',');
                   out << ']';
                 },
                 [&](const std::map<std::string, Node>& children) {
                   out << '{';
                   for (const auto& [key, child] : children) {
                     Show(child, out << key << ':');
                   }
                   out << '}';
                 },
             },
             node.value);
}

Digest Trees() {
  std::mt19937 random(3);
  Digest digest;
  for (int i = 0; i < 40; ++i) {
    const Node original{std::vector<Node>(1, Grow(random, 7))};
    const Node copy = original;
    std::ostringstream out;
    Show(copy, out);
    digest.Add(out.str());
  }
  return digest;
}

Digest Sequences() {
  std::mt19937 random(5);
  std::deque<std::string> deque;
  std::list<std::string> list;
  std::vector<std::string> vector;
  for (int i = 0; i < 100'000; ++i) {
    deque.push_front(Word(random));
    if (i % 2 == 0) list.push_back(deque.back());
    if (i % 3 == 0) vector.insert(vector.end(), deque.front());
    if (deque.size() > 1000) deque.pop_back();
  }
  list.sort();
  list.unique();
  std::stable_sort(
      vector.begin(), vector.end(),
      [](const auto& a, const auto& b) { return a.size() < b.size(); });
  Digest digest;
  for (const auto& text : list) digest.Add(text);
  for (const auto& text : vector | std::views::filter([](const auto& text) {
                            return text.size() > 10;
                          }) | std::views::take(10'000)) {
    digest.Add(text);
  }
  return digest;
}

Digest Expressions() {
  std::mt19937 random(7);
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += Word(random) + (i % 7 == 0 ? "\n" : " ");
  const std::regex expression("([a-f]+)([g-z]*)");
  Digest digest;
  for (std::sregex_iterator i(text.begin(), text.end(), expression), end;
       i != end; ++i) {
    digest.Add((*i)[1].str() + "|" + (*i)[2].str());
  }
  return digest;
}

Digest Threads() {
  std::vector<std::future<std::unique_ptr<std::vector<std::string>>>> futures;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    futures.push_back(std::async(std::launch::async, [seed] {
      std::mt19937 random(seed);
      auto words = std::make_unique<std::vector<std::string>>();
      std::set<std::shared_ptr<std::string>> shared;
      for (int i = 0; i < 30'000; ++i) {
        words->push_back(Word(random) + Word(random));
        shared.insert(std::make_shared<std::string>(words->back()));
      }
      return words;
    }));
  }
  Digest digest;
  for (auto& future : futures) {
    const auto words = future.get();
    for (const std::string& word : *words) digest.Add(word);
  }
  return digest;
}

Digest Exceptions() {
  Digest digest;
  std::function<void(int)> descend = [&](int depth) {
    std::any held = std::string(static_cast<std::size_t>(depth), 'x');
    if (depth == 0) throw std::runtime_error("the bottom of a long way down");
    try {
      descend(depth - 1);
    } catch (const std::exception&) {
      digest.Add(std::any_cast<std::string>(held));
      std::throw_with_nested(std::logic_error("on the way up"));
    }
  };
  for (int i = 0; i < 40; ++i) {
    try {
      descend(60);
    } catch (const std::exception& error) {
      digest.Add(std::string(error.what()));
    }
  }
  return digest;
}

Digest Resources() {
  std::pmr::synchronized_pool_resource pool;
  std::pmr::map<int, std::pmr::string> map(&pool);
  Digest digest;
  for (int i = 0; i < 50'000; ++i) {
    map.emplace(i * 7919 % 10'007,
                std::pmr::string(static_cast<std::size_t>(i % 200), 'y'));
    if (i % 5 == 0) map.erase(map.begin());
  }
  for (const auto& [key, value] : map) {
    digest.Add(static_cast<std::uint64_t>(key) * value.size());
  }
  return digest;
}

}  // namespace

int main() {
  Print("map", Maps<std::map<std::string, std::vector<int>>>(std::mt19937(1)));
  Print("trees", Trees());
  Print("sequences", Sequences());
  Print("expressions", Expressions());
  Print("threads", Threads());
  Print("exceptions", Exceptions());
  Print("resources", Resources());
}
