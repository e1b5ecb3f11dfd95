// How numbers, times and texts are written for people.
#ifndef HAKMEM_TOOLS_HAKMEM_WORDS_H_
#define HAKMEM_TOOLS_HAKMEM_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hakmem::tools {

// "512 bytes", "2.0 MiB", "1.5 GiB": three digits are enough to act on.
std::string Bytes(std::uint64_t bytes);
// "+1.5 GiB".
std::string SignedBytes(std::int64_t bytes);

// "1 call", "3 calls".
std::string Count(std::uint64_t count, std::string_view one,
                  std::string_view many);

// A size with what it is when it was meant as something else:
// "18446744073709551614 bytes (that is -2 as a signed number)".
std::string SizeWithSign(std::uint64_t size);

// Text from a trace is whatever a program has put there. Control bytes and
// broken UTF-8 become \xNN, so that they cannot steer a terminal.
std::string ForTerminal(std::string_view text);

// As one word of a command that somebody copies into a shell.
std::string ForShell(std::string_view text);

std::string ForHtml(std::string_view text);

// `text` broken into lines of at most `columns`, each indented, and those after
// the first by `hanging` more; a line break in `text` stays one. Ends with a
// newline.
std::string Wrapped(std::string_view text, std::size_t columns,
                    std::size_t indent, std::size_t hanging = 0);

// `text` with spaces behind it, at least one, up to `columns`.
std::string Padded(std::string_view text, std::size_t columns);

// A path without its folders.
std::string_view FileName(std::string_view path);

// How many columns a terminal needs for it.
std::size_t Columns(std::string_view utf8);

}  // namespace hakmem::tools

#endif  // HAKMEM_TOOLS_HAKMEM_WORDS_H_
