"""Compiler and linker flags of hakmem's own code; nothing else sets any."""

_WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wcast-align",
    "-Wformat=2",
    "-Wimplicit-fallthrough",
    "-Wnon-virtual-dtor",
    "-Woverloaded-virtual",
    "-Wshadow",
    "-Wundef",
    "-Wvla",
]

_CLANG_WARNINGS = [
    "-Wextra-semi",
    "-Wmost",
    "-Wthread-safety",
    "-Wunreachable-code-aggressive",
    # Abseil's headers are found by -iquote; its warnings are not ours.
    "--system-header-prefix=absl/",
]

_GCC_WARNINGS = [
    "-Wduplicated-cond",
    "-Wlogical-op",
    # gcc sees the unused result of a call that clang knows to be fine.
    "-Wno-unused-result",
]

# Tests misuse memory on purpose, and gcc notices; and googletest's macros are
# made for an `if` without braces.
_GCC_TEST_WARNINGS = [
    "-Wno-alloc-size-larger-than",
    "-Wno-array-bounds",
    "-Wno-dangling-else",
    "-Wno-free-nonheap-object",
    "-Wno-mismatched-new-delete",
    "-Wno-stringop-overflow",
    "-Wno-use-after-free",
]

_LIBRARY_WARNINGS = [
    "-Wconversion",
    "-Wmissing-declarations",
    "-Wold-style-cast",
    "-Wsign-conversion",
]

# The library runs before any constructor and after any destructor.
_LIBRARY_CLANG_WARNINGS = [
    "-Wexit-time-destructors",
    "-Wglobal-constructors",
    "-Wmissing-prototypes",
]

# What the allocator's code means, in every configuration.
_LIBRARY_SEMANTICS = [
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    # A call of malloc inside the allocator is what it says, whatever the
    # compiler knows of malloc; and our loops do not become calls of calloc.
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
    # Thread-local storage without a call of the loader, which may allocate.
    "-ftls-model=initial-exec",
]

# Returns and indirect branches can be checked by the processor. A process has it
# check them if each of its libraries has a note that says so, and that has one
# if each of its objects does: PRODUCT_LINKOPTS leave out the C library's.
_X86_BRANCHES = ["-fcf-protection=full"]

_ARM64_BRANCHES = ["-mbranch-protection=standard"]

_CHECKED_BRANCHES = select({
    "//tools/build:x86_64": _X86_BRANCHES,
    "//tools/build:arm64": _ARM64_BRANCHES,
    "//conditions:default": [],
})

# The library is fast in a build without flags. -c dbg and sanitizers are not:
# there the code should read as it was written.
_LIBRARY_SPEED = [
    "-O2",
    # What Debian 12's valgrind reads.
    "-gdwarf-4",
    "-fomit-frame-pointer",
    "-fno-plt",
    "-fno-stack-protector",
    "-ffunction-sections",
    "-fdata-sections",
    # A thread may have the smallest stack there is, 16 KiB.
    "-Wframe-larger-than=6144",
]

def _by_compiler(clang, other):
    return select({
        "//tools/build:clang": clang,
        "//conditions:default": other,
    })

def _unless_plain(flags):
    return select({
        "//tools/build:plain": [],
        "//conditions:default": flags,
    })

def _if_sanitized(flags):
    return select({
        "//tools/build:sanitized_build": flags,
        "//conditions:default": [],
    })

LIBRARY_COPTS = (
    _WARNINGS + _LIBRARY_WARNINGS + _LIBRARY_SEMANTICS +
    _by_compiler(_CLANG_WARNINGS + _LIBRARY_CLANG_WARNINGS, _GCC_WARNINGS) +
    _CHECKED_BRANCHES + _unless_plain(_LIBRARY_SPEED) +
    # Third-party code and tools are not, because compiling takes longest.
    _if_sanitized(["-O1"])
)

# Code that is rarely run (reports, options, statistics, the start) is compiled
# to be small. Its stack frames are found by frame pointers: these cost less than
# tables that follow each push. gcc keeps checks of the C++ library then, whose
# failures only that library tells.
COLD_COPTS = select({
    "//tools/build:clang_not_plain": [
        "-Os",
        "-fno-omit-frame-pointer",
    ],
    "//conditions:default": [],
})

# Where hakmem is a part of another project: its compiler and its .bazelrc are not
# known, and warnings would be nobody's there. Symbols cannot be renamed
# (renamed.bzl) where the project has all of it optimised at link time.
CONSUMED_COPTS = ["-std=c++20", "-w", "-fno-lto"] + _LIBRARY_SEMANTICS + _CHECKED_BRANCHES + _unless_plain(_LIBRARY_SPEED)

# Tests, tools and benchmarks use abseil and googletest, whose headers gcc
# takes for ours; so the conversion warnings are the library's alone.
TEST_COPTS = (
    _WARNINGS +
    _by_compiler(_CLANG_WARNINGS, _GCC_WARNINGS + _GCC_TEST_WARNINGS) +
    _unless_plain(["-O1", "-g1"])
)

# Of tests' libraries.
TEST_LIBRARY_COPTS = TEST_COPTS + _if_sanitized(["-O1"])

# Of googletest's programs: compiling them takes far longer than running them,
# and most of that is optimising what runs once, most of all under sanitizers.
UNIT_TEST_COPTS = TEST_COPTS + ["-O0"]

PRODUCT_LINKOPTS = [
    # The C library's first and last objects: nothing of them is needed, and those
    # of Debian have no note of checked branches.
    "-nostartfiles",
    # No C++ library: what nothing refers to is not needed.
    "-Wl,--as-needed",
    "-Wl,--gc-sections",
    "-Wl,-z,now",
    "-Wl,-z,relro",
    # Threads' exit hooks and blocks outlive a dlclose.
    "-Wl,-z,nodelete",
    # Code must not need relocation, or it could not be shared.
    "-Wl,-z,text",
    "-Wl,-z,defs",
]
