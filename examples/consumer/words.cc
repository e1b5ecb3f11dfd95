#include "words.h"

std::vector<std::string> Words(int count) {
  std::vector<std::string> words;
  for (int i = 0; i < count; ++i) {
    words.emplace_back(static_cast<std::size_t>(i) + 32, 'x');
  }
  return words;
}
