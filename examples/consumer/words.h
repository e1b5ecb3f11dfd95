// Words, for an example.
#ifndef HAKMEM_EXAMPLES_CONSUMER_WORDS_H_
#define HAKMEM_EXAMPLES_CONSUMER_WORDS_H_

#include <string>
#include <vector>

std::vector<std::string> Words(int count);

#endif  // HAKMEM_EXAMPLES_CONSUMER_WORDS_H_
