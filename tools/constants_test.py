#!/usr/bin/env python3
"""docs/constants.md is what the sources have, and what tools/constants.py can evaluate."""
import unittest

import constants


class ConstantsTest(unittest.TestCase):
    def test_the_page_is_what_the_sources_have(self):
        self.assertEqual(constants.PAGE.read_text(encoding="utf-8"), constants.page(), "run tools/constants.py --write")

    def test_values(self):
        known = {"kA": "std::size_t{1} << 4", "kB": "kA * (3'000 + 2U) / 2", "kC": "Other::kA - sizeof(void*)",
                 "kD": "Function(1)"}
        self.assertEqual([constants.evaluate(name, known) for name in ("kA", "kB", "kC")], [16, 24016, 8])
        self.assertRaises(LookupError, constants.evaluate, "kD", known)
        self.assertRaises(LookupError, constants.evaluate, "kE", known)

    def test_units(self):
        self.assertEqual([constants.shown(*row) for row in (("kFooBytes", 1536), ("kFooUnits", 5), ("kFooBytes", 100),
                                                            ("kFooMs", 1000), ("kFoo", 2048), ("kXBytes", 3 << 19))],
                         ["1.5 KiB", "320 KiB", "100 bytes", "1,000 ms", "2,048", "1.5 MiB"])


if __name__ == "__main__":
    unittest.main()
