#!/usr/bin/env python3
"""What tools/budgets.py counts, and when it fails."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import budgets

SCRIPT = pathlib.Path(__file__).resolve().with_name("budgets.py")
CLASS = """
template <int k>
class Heap final : public Base {
 public:
  Heap() : a_(F()), b_{1} {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  friend void F(Heap& heap);
  using Function = void (*)(int);
  static_assert(sizeof(int) == 4);
  // Not this(one).
  void Out(int a = 1, int b = F(2));             // 1
  int In() const { if (a_) { return F(a_); } return 2; }  // 2
  template <typename T>
  HAK_ALWAYS_INLINE static bool Both(const T& t);  // 3
  bool operator==(const Heap& other) const = default;  // 4
  struct Nested {
    void NotItsOwn();
  };

 private:
  int a_ HAK_GUARDED_BY(lock_) = F(1);
  int b_[4] = {F(1), 2};
  alignas(64) int c_;
};
void NotAMember();
"""


class BudgetsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        subprocess.run(["git", "-C", self.root, "init", "-q"], check=True)
        self.write("allocator/a/x.h", '#include "allocator/b/y.h"\n' + CLASS)
        self.write("allocator/b/y.h", '#include "allocator/b/z.h"\n')
        self.write("allocator/b/z.h", '#include "allocator/b/y.h"\n')
        self.write("allocator/a/x.cc", '#include "allocator/a/x.h"\n1\n2\n')
        self.write("allocator/a/x_test.cc", "1\n" * 100)
        self.write("allocator/a/test_x.h", "1\n" * 100)
        self.write("tools/user.cc", '#include "allocator/a/x.h"\n')

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def run_rows(self, *rows):
        self.write("rows.txt", "# A comment.\n\n" + "".join(row + "\n" for row in rows))
        done = subprocess.run([sys.executable, SCRIPT, "rows.txt"], cwd=self.root, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_functions_of_a_class(self):
        self.assertEqual(budgets.declared_functions(CLASS, "Heap"), 4)
        with self.assertRaises(LookupError):
            budgets.declared_functions(CLASS, "Slab")

    def test_each_kind(self):
        for most, how in ((5, "lines allocator/b/* allocator/a/x.cc"), (4, "methods allocator/a/x.h Heap"),
                          (6, "calls F allocator/a/*"), (2, "text allocator/a/x.h HAK_"), (2, "includers allocator/b/z.h"),
                          (2, "cycles allocator/"), (2, "reaches allocator/a/x.h")):
            with self.subTest(how):
                self.assertEqual(self.run_rows("it | %d | %s" % (most, how))[0], 0)
                code, out = self.run_rows("it | %d | %s" % (most - 1, how))
                self.assertEqual(code, 1)
                self.assertIn("%d" % most, out)
                self.assertIn("it: OVER ITS BUDGET", out)

    def test_file_belongs_to_the_first_feature(self):
        code, out = self.run_rows("sources | 3 | feature *.cc", "rest | 99 | feature *")
        self.assertEqual(code, 0, out)
        self.assertIn("%7d %7d  rest" % (CLASS.count("\n") + 3, 99), out)

    def test_file_without_a_feature(self):
        code, out = self.run_rows("sources | 3 | feature *.cc", "headers | 99 | feature */b/*")
        self.assertEqual(code, 1)
        self.assertIn("allocator/a/x.h belongs to no feature", out)

    def test_stale_rows(self):
        for how in ("lines allocator/c/*", "feature */gone.cc", "methods allocator/a/x.h Gone", "text gone.h a",
                    "includers gone.h", "reaches gone.h", "unheard of"):
            with self.subTest(how):
                code, out = self.run_rows("it | 99 | " + how)
                self.assertEqual(code, 1)
                self.assertIn("rows.txt:3: ", out)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=0))
