// Names of Rust's older mangling, which C++ demanglers leave half done.
#ifndef HAKMEM_TOOLS_HAKMEM_RUST_NAME_H_
#define HAKMEM_TOOLS_HAKMEM_RUST_NAME_H_

#include <string>
#include <string_view>

namespace hakmem::tools {

// "<alloc::string::String as core::fmt::Display>::fmt" of
// "_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$::fmt::h…", with
// 16 digits behind the h; any other name as it is.
std::string ReadableName(std::string_view demangled);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_RUST_NAME_H_
