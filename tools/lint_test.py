#!/usr/bin/env python3
"""Each house rule finds what breaks it, and nothing in what does not."""
import sys
import unittest

import lint

GUARDED = """// A header.
//
// Owns: nothing. Called by: tests.
// Thread-safety: constants.
#ifndef HAKMEM_ALLOCATOR_HEAP_X_H_
#define HAKMEM_ALLOCATOR_HEAP_X_H_
%s
#endif  // HAKMEM_ALLOCATOR_HEAP_X_H_
"""


class LintTest(unittest.TestCase):

    def expect(self, path, text, *findings):
        """`findings`: (line, part of the sentence) of each, in order."""
        got = lint.lint(path, text)
        self.assertEqual([line for line, _ in got], [line for line, _ in findings], got)
        for (_, sentence), (_, part) in zip(got, findings):
            self.assertIn(part, sentence)

    def test_clean_header(self):
        self.expect("allocator/heap/x.h", GUARDED % "inline int F() { return 1; }")

    def test_file_length(self):
        self.expect("tools/x.py", "\n" * 500)
        self.expect("tools/x.py", "\n" * 501, (1, "501 lines"))
        self.expect("docs/x.md", "\n" * 501)

    def test_function_length(self):
        body = "  a;\n"
        fits = "int F(int a) {\n" + body * 58 + "}\n"
        long = "int F(int a) {\n" + body * 59 + "}\n"
        self.expect("allocator/heap/x.cc", fits)
        self.expect("allocator/heap/x.cc", long, (1, "61 lines"))
        self.expect("allocator/heap/x.cc", "namespace a {\nclass B final : public C {\n" + long + "};\n}\n",
                    (3, "61 lines"))
        self.expect("allocator/heap/x_test.cc", "TEST(A, B) {\n  if (a) {\n" + body * 60 + "  }\n}\n", (1, "64 lines"))
        self.expect("tools/x.py", "def f():\n" + "    a()\n" * 60, (1, "61 lines"))

    def test_long_non_functions(self):
        rows = "  1,\n" * 70
        for head in ("namespace a", "struct alignas(64) A", "enum class A : int", "constexpr int k[] =", 'extern "C"',
                     "template <int (*F)(int)>\nclass A"):
            self.expect("allocator/heap/x.cc", head + " {\n" + rows + "};\n")

    def test_braces_in_literals_and_comments(self):
        odd = "  // }\n  F(\"}\", '}', \"\\\"}\", R\"a(})a\");  /* } */\n"
        self.expect("allocator/heap/x.cc", "int F(int a) {\n" + odd * 29 + "}\n")
        self.expect("allocator/heap/x.cc", "int F(int a) {\n" + odd * 30 + "}\n", (1, "62 lines"))
        self.expect("allocator/heap/x.cc", "int F() { return 1'000'000; }\n")

    def test_include_guard(self):
        wrong = (GUARDED % "").replace("HEAP_X", "HEAP_Y")
        self.expect("allocator/heap/x.h", wrong, (1, "HAKMEM_ALLOCATOR_HEAP_X_H_"), (5, "#ifndef"), (6, "macro"))

    def test_conditional_compilation(self):
        text = "#ifdef __linux__\n#elif defined(A)\n#else\n#endif\n"
        self.expect("allocator/heap/x.cc", text, (1, "#ifdef"), (2, "#elif"))
        self.expect("allocator/platform/x.cc", text)
        self.expect("allocator/base/x.cc", text)
        self.expect("allocator/frontend/x.inc", "#if 1\n#endif\n", (1, "#if"))
        self.expect("allocator/heap/x.h", GUARDED % "#ifdef __cplusplus\n#endif", (7, "#ifdef"))

    def test_macros(self):
        self.expect("allocator/heap/x.cc", "#define HAK_A 1\n", (1, "macro"))
        self.expect("allocator/base/x.cc", "  # define A\n", (1, "macro"))
        self.expect("allocator/tests/x.cc", "#define A 1\n")

    def test_header_comment(self):
        text = (GUARDED % "").replace("Owns:", "Has:")
        self.expect("allocator/heap/x.h", text, (1, "Owns:"))
        self.expect("allocator/heap/x.h", text.replace("A header.", "X's slow paths. Included by\n// y.h alone."))

    def test_memory_orders(self):
        bare = "\n" * 9 + "a.load(std::memory_order_acquire);\n"
        self.expect("allocator/heap/x.cc", bare, (10, "acquire"))
        self.expect("allocator/heap/x.cc", "// acquire: pairs with F.\n" + bare, (11, "acquire"))
        self.expect("allocator/heap/x.cc", "// acquire: pairs with F.\na.load(std::memory_order_acquire);\n")
        self.expect("allocator/heap/x.cc", "a.load(std::memory_order_relaxed);\n")
        self.expect("allocator/heap/x_test.cc", bare)

    def test_waits_for_a_time(self):
        for code in ("usleep(10);", "sleep (1);", "nanosleep(&a, nullptr);", "alarm(5);", "setitimer(A, &b, nullptr);",
                     "std::this_thread::sleep_for(a);", "b.wait_for(lock, a);", "sem_timedwait(&a, &b);", "SleepMs(1);",
                     "pthread_mutex_timedlock(&a, &b);", "poll(a, 1, 100);", "lock.try_lock_until(a);"):
            for path in ("allocator/heap/x_test.cc", "tools/hakmem/x_test.cc", "allocator/testing/x.inc",
                         "allocator/tests/fork/x.cc"):
                self.expect(path, "a;\n  " + code + "\n", (2, "waits for a time"))
            self.expect("allocator/heap/x.cc", code + "\n")
            self.expect("allocator/heap/x_test.cc", code + "  // waits: it is what is tested\n")
            self.expect("allocator/heap/x_test.cc", code + "  // waits:\n", (1, "waits for a time"))
        self.expect("allocator/heap/x_test.cc", "// It would sleep(1).\nF(\"usleep(1)\", SYS_nanosleep, GoToSleep());\n")

    def test_what_a_range_in_braces_needs(self):
        code = "void F() {\n  for (const int i :\n       {1, 2}) G(i);\n}\n"
        self.expect("allocator/base/x.cc", code, (3, "<initializer_list>"))
        self.expect("allocator/base/x.cc", "#include <initializer_list>\n" + code)
        self.expect("allocator/base/x.cc", "void F() {\n  for (int i : A::k) {\n  }\n}\n")
        self.expect("allocator/base/x_test.cc", code)

    def test_names_that_only_glibc_has(self):
        code = "#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)\n#endif\nrlimit64 a = {};\nlong b = SYS_prlimit64;\noff64_t c;\n"
        self.expect("allocator/base/x.cc", code, (1, "__GLIBC_PREREQ is glibc's alone"), (3, "rlimit64"), (5, "off64_t"))
        self.expect("allocator/base/x_test.cc", code)
        self.expect("allocator/base/x.cc", "int open64x;  // open64\n")

    def test_invariants_of_two_headers_have_different_letters(self):
        one = ("a.h", "//   A1: this.\n//   A2: that.\n")
        self.assertEqual(list(lint.shared_letters([one, ("b.h", "//   AB1: it.\n")])), [])
        self.assertEqual([found[:2] for found in lint.shared_letters([one, ("b.h", "\n//   A3: it.\n")])],
                         [("b.h", 2)])

    def test_each_invariant_has_a_row(self):
        header = ("a.h", "//   A1: this.\n//   A2: that.\n//   A3: it.\n")
        self.assertEqual(list(lint.unlisted_invariants([header], "| A1, A2 `a.h` | this; that | |\n| A3 | it | |\n")), [])
        self.assertEqual([found[:2] for found in lint.unlisted_invariants([header], "| A1 `a.h` | A2 | |\n| A3 | | |\n")],
                         [("a.h", 2)])

    def test_each_atomic_has_a_row(self):
        source = "struct A {\n  std::atomic<int> a_{0};\n  std::atomic<void (*)(int)> b_ =\n      {};\n  Relaxed<bool> c;\n" \
                 "  static constinit inline std::atomic<int> d_\n      HAK_X = 1;\n  std::atomic<int> e_[kN] = {};\n};\n"
        document = "| `A::a_`, `b_` | |\n## Operations that are not relaxed\n| `A::Set`: `a_` | `A::Get` |\n" \
                   "## Relaxed\n| `c`, `Get`, `d_` (`x.cc`) | `e_` of `A` |\n"
        find = lambda text: [(line, sentence.split()[-1])
                             for _, line, sentence in lint.unlisted_atomics([("x.h", text)], document)]
        self.assertEqual(find(source), [(8, "e_")])
        self.assertEqual(find("void F(std::atomic<int>& f, const std::atomic<int>* g) {}\n// std::atomic<int> h;\n"), [])
        operations = "void A::Set() {\n  a_.store(1, std::memory_order_release);\n}\nint A::Get() ABSL_X(a) {\n" \
                     "  return a_.load(\n      std::memory_order_acquire);  // memory_order_release\n}\n"
        self.assertEqual(find(operations), [(6, "Get")])
        # Rows of another class with the same names.
        other = "struct ABSL_X(a) B : C {\n  struct D {};\n  std::atomic<int> a_;\n};\n" + operations.replace("A::", "B::")
        self.assertEqual(find(other), [(3, "a_"), (6, "Set"), (10, "Get")])

    def test_real_time(self):
        for line in ("import time", "from time import sleep", "time.sleep(1)", "run(['a'], timeout=60)", "s.settimeout(3)",
                     "process.wait(3)", "signal.alarm(3)",
                     "'while :; do sleep 0.1; done'", "'timeout 5 x'"):
            for path in ("tools/x_test.py", "tools/hakmem/test_x.py", "allocator/tests/a/x.py", "tools/provoke/x.py"):
                self.expect(path, line + "\n", (1, "real time"))
            self.expect("tools/x_test.py", line + "  # waits: because\n")
            self.expect("tools/x.py", line + "\n")
        for line in ("import timeit", "timeout_seconds=4", "sleep(x)", "# a timeout is", "--timeout"):
            self.expect("tools/x_test.py", line + "\n")
        self.expect("tools/real_programs/programs/x.sh", "sleep 1\n", (1, "real time"))

    def test_text(self):
        self.expect("docs/x.md", "a\n" + "TO" + "DO: b\n", (2, "unfinished"))
        self.expect("docs/x.md", "see /ro" + "ot/x\n", (1, "one machine"))
        self.expect("docs/x.md", "a/work/b and workspace/root.h\n")
        self.expect("docs/x.md", "https://" + "py" + "pi.org/x\n", (1, "registry"))
        self.expect("tools/x.sh", "a \n\tb\nc", (1, "space"), (2, "tab"), (3, "newline"))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=0))
