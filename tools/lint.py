#!/usr/bin/env python3
"""House rules that neither the compiler nor clang-format checks.

Usage: tools/lint.py [FILE…]      (default: every file git knows or would add)
Prints PATH:LINE: SENTENCE for each finding and exits with 1 if there is one.
"""
import ast
import re
import subprocess
import sys

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
CPP = (".cc", ".h", ".inc")
CODE = CPP + (".py", ".sh", ".bzl")
# Where conditional compilation may be: what differs by compiler or by system.
CONDITIONAL_FOLDERS = ("allocator/base/", "allocator/platform/", "allocator/process/", "allocator/stacks/")
MACRO_HEADERS = ("allocator/base/check.h", "allocator/base/compiler.h", "allocator/base/probe.h",
                 "allocator/base/sanitizer.h", "allocator/frontend/token_family.h",
                 "allocator/frontend/token_symbols.inc", "allocator/frontend/typed_symbols.inc", "allocator/hakmem.h", "dist/tests/abi/hakmem_0_1.h")
# Code that no product contains.
TEST_FOLDERS = ("allocator/tests/", "allocator/testing/", "benchmarks/", "fuzz/")
TEST_SOURCE = re.compile(r"_test\.cc$|/(?:fake|test)_\w+\.\w+$")
# The public header is C, so it may say extern "C" for C++ alone.
C_HEADERS = ("allocator/hakmem.h", "dist/tests/abi/hakmem_0_1.h")
# These name what they look for.
SELF = ("tools/lint.py", "tools/lint_test.py")

INVARIANT = re.compile(r"^//   (([A-Z]+)\d+): ")
INVARIANTS = "docs/invariants.md"
INVARIANT_ROW = re.compile(r"^\| ((?:[A-Z]+\d+(?:, )?)+)", re.MULTILINE)
MEMORY_ORDERS = "docs/memory_orders.md"
STRONGER = "\n## Operations that are not relaxed\n"
ATOMIC = re.compile(r"\b(?:std::atomic|Relaxed)<(?:[^<>;]|<[^<>;]*>)*>\s+(?:\w+::)*(\w+)(?:\[[^\]]*\])?\s*(?:HAK_\w+\s*)?"
                    r"(?:=[^;]*|\{[^;]*\})?;")
SCOPE = re.compile(r"\b(?:class|struct)\s+(?:(?:alignas|[A-Z]+_\w+)(?:\([^)]*\))?\s+)*(\w+)[^;{}()]*\{|[{}]")
FUNCTION_NAME = re.compile(r"(?:^|[\s:*&])(?!__attribute__|ABSL_|alignas)(~?\w+)\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX)\b")
MACHINE_PATH = re.compile(r"(?:^|[^\w.])/(?:work|farm|root|home)/")
REGISTRY = re.compile(r"https?://[a-z0-9.-]*(?:pypi|npmjs|crates|golang|maven|debian)")
DIRECTIVE = re.compile(r"^\s*#\s*(\w+)\s*(.*)")
ORDER = re.compile(r"memory_order(?:_|::)(acquire|release|acq_rel|seq_cst)")
# Python and shell that test something, and what makes them depend on the time that something takes.
TEST_SCRIPT = re.compile(r"(?:^|/)(?:test_\w+|\w+_test)\.(?:py|sh)$|^allocator/tests/.*\.(?:py|sh)$|^tools/provoke/.*\.py$"
                         r"|^tools/real_programs/programs/")
REAL_TIME = re.compile(r"^\s*(?:import|from) time\b|\btime\.sleep\b|\btimeout=|\.settimeout\(|\.(?:wait|join)\([\d.]"
                       r"|\bsignal\.(?:alarm|setitimer)\b|\bsleep +[\d.$]+|\btimeout +[\d.$]+")
WAITS_FOR_A_REASON = re.compile(r"# waits: \S")
# Whoever waits for a time fails, or shows nothing, on a busy machine.
TIMED = re.compile(
    r"\b(?:u?sleep|nanosleep|clock_nanosleep|SleepMs|SleepShortly|u?alarm|setitimer|timer_\w+|p?poll|p?select|"
    r"epoll_p?wait|sigtimedwait|\w+_timed(?:wait|lock|join_np))\s*\("
    r"|\b(?:sleep|wait|try_lock|try_acquire|try_join)_(?:for|until)\b")
TIMED_EXCEPTION = re.compile(r"// waits: \S")
# Names of glibc's that musl does not have.
GLIBC_ONLY = re.compile(
    r"__GLIBC_PREREQ|\bRLIM64_\w+|\b(?:dirent|fpos|fstat|ino|off|rlim|rlimit|stat|statfs|statvfs)64(?:_t)?\b"
    r"|\b(?:f?truncate|[gs]etrlimit|lseek|lstat|mmap|open(?:at)?|p(?:read|write)v?|prlimit)64\b")
BRACED_RANGE = re.compile(r"\bfor \([^;{}]*[^:]:\s*\{")
NOT_FUNCTION = re.compile(
    r"^(?:template\s*<.*>\s*)?(?:(?:inline|static|constexpr|constinit|const|typedef|export)\s+)*"
    r"(?:class|struct|union|enum|namespace|extern)\b", re.DOTALL)


def blank_non_code(text):
    """`text` with comments, literals and directives blanked; lines keep their numbers."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/'
        r'|R"(?P<tag>[^()\s\\]{0,16})\(.*?\)(?P=tag)"'
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
        r'|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*', re.DOTALL | re.MULTILINE)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def cpp_functions(text):
    """(first line, last line) of each function that is not inside another."""
    code = blank_non_code(text)
    scopes = []  # (is a function, line where it starts)
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        if match.group() == "{":
            head = code[head_start:at]
            words = head.strip()
            inside = bool(scopes) and scopes[-1][0]
            is_function = inside or (
                ")" in words and not words.endswith(("=", ",", "(", "return"))
                and not NOT_FUNCTION.match(words))
            start = head_start + len(head) - len(head.lstrip())
            scopes.append((is_function, code.count("\n", 0, start) + 1))
        elif match.group() == "}" and scopes:
            is_function, first = scopes.pop()
            if is_function and not (scopes and scopes[-1][0]):
                yield first, code.count("\n", 0, at) + 1
        head_start = at + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno


def is_product(path):
    return (path.startswith("allocator/") and path.endswith(CPP) and not TEST_SOURCE.search(path)
            and not path.startswith(TEST_FOLDERS))


def check_lengths(path, text):
    lines = text.count("\n")
    if path.endswith(CODE) and lines > MAX_FILE_LINES:
        yield 1, "the file has %d lines, more than %d" % (lines, MAX_FILE_LINES)
    functions = []
    if path.endswith(CPP):
        functions = cpp_functions(text)
    elif path.endswith(".py"):
        functions = python_functions(text)
    for first, last in functions:
        if last - first + 1 > MAX_FUNCTION_LINES:
            yield first, "the function has %d lines, more than %d" % (last - first + 1, MAX_FUNCTION_LINES)


def directives(text):
    """(line, word, rest) of each preprocessor directive."""
    for number, line in enumerate(text.split("\n"), 1):
        match = DIRECTIVE.match(line)
        if match:
            yield number, match.group(1), match.group(2).split("//")[0].split("/*")[0].strip()


def guard_name(path):
    return "HAKMEM_" + re.sub(r"\W", "_", path).upper() + "_"


def check_guard(path, text):
    if not path.endswith(".h"):
        return
    found = list(directives(text))
    want = guard_name(path)
    if ([d[1:] for d in found[:2]] != [("ifndef", want), ("define", want)]
            or found[-1][1] != "endif"):
        yield 1, "the include guard must be %s, around everything" % want


def check_preprocessor(path, text):
    if not path.endswith(CPP):
        return
    guard = guard_name(path)
    found = list(directives(text))
    if found and found[0][1:] == ("ifndef", guard):
        found = found[2:-1]
    for number, word, rest in found:
        if word in ("if", "ifdef", "ifndef", "elif"):
            in_c_header = path in C_HEADERS and (word, rest) == ("ifdef", "__cplusplus")
            if not path.startswith(CONDITIONAL_FOLDERS) and not in_c_header:
                yield number, "#%s outside of %s" % (word, " and ".join(CONDITIONAL_FOLDERS))
        elif word == "define" and path not in MACRO_HEADERS and not path.startswith(TEST_FOLDERS):
            yield number, "a macro outside of %s" % ", ".join(MACRO_HEADERS)


def check_header_comment(path, text):
    """Every header of the allocator begins with its contract."""
    if not (path.startswith("allocator/") and path.endswith(".h")) or path.startswith(TEST_FOLDERS):
        return
    head = re.sub(r"\s+(?://|\*)?\s*", " ", text.split("#ifndef")[0])
    # Half of a long header; the other half has the contract.
    if re.search(r"Included by \w+\.h alone\.", head):
        return
    for word in ("Owns:", "Called by:", "Thread-safety:"):
        if word not in head:
            yield 1, "the header's first comment must say \"%s\"" % word


def check_memory_orders(path, text):
    """Each order stronger than relaxed says nearby what it is for."""
    if not is_product(path):
        return
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        match = ORDER.search(line.split("//")[0])
        if not match:
            continue
        near = lines[max(0, number - 9):number]
        comments = " ".join(part.split("//", 1)[1] for part in near if "//" in part)
        words = {"acq_rel": ("acq", "release")}.get(match.group(1), (match.group(1),))
        if not any(word in comments for word in words):
            yield number, "no comment nearby says what this %s pairs with" % match.group(1)


def check_real_time(path, text):
    """A script that tests waits for words, signals and ends, not for seconds."""
    if not TEST_SCRIPT.search(path) or path in SELF:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if REAL_TIME.search(line) and not WAITS_FOR_A_REASON.search(line):
            yield number, "a test depends on real time; wait for what happens, or say `# waits: REASON`"


def check_time(path, text):
    """A test waits for what happens, for as long as it takes (allocator/process/test_waits.h)."""
    in_tests = path.endswith("_test.cc") or path.startswith(("allocator/tests/", "allocator/testing/", "fuzz/"))
    if not (in_tests and path.endswith(CPP)):
        return
    for number, (line, code) in enumerate(zip(text.split("\n"), blank_non_code(text).split("\n")), 1):
        match = TIMED.search(code)
        if match and not TIMED_EXCEPTION.search(line):
            yield number, "a test that waits for a time (%s)" % match.group().rstrip("( ")


def check_libcs(path, text):
    """The product compiles against musl, and with compilers to come."""
    if not is_product(path):
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = GLIBC_ONLY.search(line.split("//")[0])
        if match:
            yield number, "%s is glibc's alone" % match.group()
    match = None if "#include <initializer_list>\n" in text else BRACED_RANGE.search(blank_non_code(text))
    if match:
        yield text.count("\n", 0, match.end()) + 1, "a range in braces needs <initializer_list>, for gcc 16"


def check_text(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if path not in SELF:
            if UNFINISHED.search(line):
                yield number, "unfinished work belongs in an issue"
            if MACHINE_PATH.search(line):
                yield number, "a path of one machine"
            if REGISTRY.search(line):
                yield number, "the address of a package registry"
        if path.endswith(CODE + ("BUILD",)):
            if line != line.rstrip():
                yield number, "space at the end of the line"
            if "\t" in line:
                yield number, "a tab"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end of the file"


CHECKS = (check_lengths, check_guard, check_preprocessor, check_header_comment, check_memory_orders, check_real_time,
          check_time, check_libcs, check_text)


def lint(path, text):
    """The findings in one file, as (line, sentence), in order."""
    return sorted(set(finding for check in CHECKS for finding in check(path, text)))


def shared_letters(headers):
    """Invariants that two headers number alike, as (path, line, sentence). `headers`: (path, text)."""
    owners = {}
    for path, text in headers:
        for number, line in enumerate(text.split("\n"), 1):
            match = INVARIANT.match(line)
            if match and owners.setdefault(match.group(2), path) != path:
                yield path, number, "invariants numbered %s are those of %s" % (
                    match.group(2), owners[match.group(2)])


def unlisted_invariants(headers, document):
    """Invariants of headers without a row in the document, as (path, line, sentence)."""
    listed = {name for row in INVARIANT_ROW.findall(document) for name in row.split(", ")}
    for path, text in headers:
        for number, line in enumerate(text.split("\n"), 1):
            match = INVARIANT.match(line)
            if match and match.group(1) not in listed:
                yield path, number, "%s has no row for %s" % (INVARIANTS, match.group(1))


def first_words(tables):
    """The words and files quoted in the first column of each row."""
    return [set(re.findall(r"\w+\.(?:cc|h|inc)\b|~?\w+", " ".join(re.findall("`([^`]+)`", row.split("|")[1]))))
            for row in tables.split("\n") if row.startswith("|")]


def classes_around(code, end):
    """The classes that a place is in, and the one that a name there is qualified with."""
    scopes = []
    for match in SCOPE.finditer(code, 0, end):
        if match.group() == "}":
            del scopes[-1:]
        else:
            scopes.append(match.group(1))
    return {name for name in scopes if name}.union(re.findall(r"(\w+)(?:<[^<>]*>)?::$", code[:end]))


def unlisted_atomics(sources, document):
    """Atomics, and functions with an order stronger than relaxed, of which no row has the name and the class or file."""
    listed = first_words(document)
    stronger = first_words(document.split(STRONGER, 1)[-1].split("\n## ", 1)[0])
    for path, text in sources:
        code = blank_non_code(text)
        # (where, the place of the name, or None; its rows)
        found = [(match.start(1), match, listed) for match in ATOMIC.finditer(code)]
        starts = [0] + [match.end() for match in re.finditer("\n", code)]
        for first, last in cpp_functions(text) if ORDER.search(code) else ():
            begin, end = starts[first - 1], (starts + [len(code)])[last]
            name = FUNCTION_NAME.search(code, begin, end)
            found += [(match.start(), name, stronger) for match in ORDER.finditer(code, begin, end)]
        for at, name, rows in found:
            owners = classes_around(code, name.start(1)) if name else set()
            owners |= {re.sub(r".*/|\.\w+$", "", path) + end for end in CPP}
            if not any(name and name.group(1) in words and owners & words for words in rows):
                yield path, code.count("\n", 0, at) + 1, "%s has no row for %s" % (
                    MEMORY_ORDERS, name.group(1) if name else "an operator")


def known_files():
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         check=True, capture_output=True).stdout
    return [name for name in out.decode().split("\0") if name]


def main():
    findings = 0
    headers = []
    sources = []
    for path in sorted(set(sys.argv[1:] or known_files())):
        if path == "LICENSE" or path.endswith(".patch") or path.startswith("fuzz/corpus/"):
            continue
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # a binary, or deleted but not yet committed
        if path.startswith(("allocator/", "fuzz/")) and path.endswith((".h", ".inc")):
            headers.append((path, text))
        if is_product(path):
            sources.append((path, text))
        for line, sentence in lint(path, text):
            print("%s:%d: %s" % (path, line, sentence))
            findings += 1
    with open(INVARIANTS, encoding="utf-8") as file:
        invariants = file.read()
    with open(MEMORY_ORDERS, encoding="utf-8") as file:
        orders = file.read()
    for finding in (*shared_letters(headers), *unlisted_invariants(headers, invariants),
                    *unlisted_atomics(sources, orders)):
        print("%s:%d: %s" % finding)
        findings += 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
