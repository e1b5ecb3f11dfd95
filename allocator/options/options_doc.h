// docs/options.md, made from the table of options.
//
// Owns: the page's words. Called by: the program options_doc and its test.
// Thread-safety: pure functions.
#ifndef HAKMEM_ALLOCATOR_OPTIONS_OPTIONS_DOC_H_
#define HAKMEM_ALLOCATOR_OPTIONS_OPTIONS_DOC_H_

#include <string>

namespace hakmem {

std::string OptionsDoc();

}  // namespace hakmem

#endif  // HAKMEM_ALLOCATOR_OPTIONS_OPTIONS_DOC_H_
