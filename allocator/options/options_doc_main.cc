// Prints docs/options.md.
#include <iostream>

#include "allocator/options/options_doc.h"

int main() {
  std::cout << hakmem::OptionsDoc() << std::flush;
  return std::cout.good() ? 0 : 1;
}
