#!/usr/bin/python3
"""Tests of study.py and schemes.py."""
import re
import unittest

import schemes
import study

ALLOCATE = 0


class SchemesTest(unittest.TestCase):
    def test_first_is_the_allocators(self):
        header = (study.ROOT / "allocator/slab/size_class.h").read_text()
        count = int(re.search(r"kClassCount = (\d+);", header)[1])
        now = next(iter(schemes.SCHEMES.values()))
        self.assertEqual(len(now), count)
        self.assertEqual(now[:10] + now[-2:], [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 57344, 65536])

    def test_all_are_usable(self):
        for name, sizes in schemes.SCHEMES.items():
            self.assertEqual(sizes, sorted(set(sizes)), name)
            self.assertEqual((sizes[0], sizes[-1]), (16, schemes.MAX_BYTES), name)
            self.assertFalse([size for size in sizes if size % 16], name)

    def test_pool_sizes_keep_to_the_granule(self):
        sizes = schemes.by_doubling(8, granule=256)
        self.assertFalse([size for size in sizes if size > 1024 and size % 256])
        self.assertIn(144, sizes)

    def test_finer(self):
        sizes = schemes.finer((4096, 8192))
        self.assertEqual(len(sizes), 48)
        self.assertLessEqual({4608, 5632, 6656, 7680}, set(sizes))

    def test_class_table(self):
        table = schemes.class_table(schemes.by_doubling(4))
        self.assertEqual([table[i] for i in (0, 1, 8, 9, 10, 11, 4096)], [0, 0, 7, 8, 8, 9, 43])

    def test_tail(self):
        self.assertEqual(schemes.tail(1024, 1), 0)
        self.assertAlmostEqual(schemes.tail(40960, 1), 24576 / 65536)


class DecodeTest(unittest.TestCase):
    def test_all_events(self):
        data = b"HAKTRACE" + bytes(8) + bytes([
            1, 2, 3, 4,
            0, 1, 0xC8, 1,     # block 1: 200 bytes
            8 + 2, 1, 2, 9, 6,  # thread 1, block 2: 9 bytes at multiples of 64
            3, 1, 16,          # block 1: realloc
            8 + 4, 0, 2])      # thread 0 frees block 2
        self.assertEqual(study.decode(data), [
            (0, 0, 1, 200), (2, 1, 2, 64), (3, 1, 1, 16), (4, 0, 2, 0)])

    def test_refusals(self):
        with self.assertRaises(study.BadTrace):
            study.decode(b"something else, long enough")
        with self.assertRaises(study.BadTrace):
            study.decode(b"HAKTRACE" + bytes(8) + bytes([2, 0, 0, 0]))


class SimulateTest(unittest.TestCase):
    def test_slack(self):
        result = study.simulate([(ALLOCATE, 0, 1, 100), (ALLOCATE, 0, 2, 150)], [128, 160, 65536])
        # After the first event 28 of 100 bytes, after the second 38 of 250.
        self.assertAlmostEqual(result.slack, (28 + 38) / (100 + 250))
        self.assertAlmostEqual(result.slack_by_count, 38 / 250)
        self.assertEqual((result.partly, result.in_use), (1.5, 2))

    def test_emptied_slab_is_not_held(self):
        events = [(ALLOCATE, 0, 1, 64), (study.FREE, 0, 1, 0)]
        result = study.simulate(events, [64, 65536])
        self.assertAlmostEqual(result.held, 64 / 1024 / 2)
        self.assertAlmostEqual(result.touched, 4 / 1024 / 2)

    def test_full_slab_is_not_partly_used(self):
        events = [(ALLOCATE, 0, block, 32768) for block in range(32)]
        result = study.simulate(events, [32768, 65536], units=lambda size: 1)
        self.assertEqual(result.partly, 0.5)
        self.assertAlmostEqual(result.held, sum((n + 2) // 2 for n in range(32)) / 32 / 16)

    def test_realloc_within_a_class_keeps_the_slot(self):
        events = [(ALLOCATE, 0, 1, 40), (study.REALLOC, 1, 1, 48), (study.REALLOC, 1, 1, 100)]
        result = study.simulate(events, [48, 128, 65536])
        self.assertEqual(result.in_use, 2)
        self.assertAlmostEqual(result.slack, (8 + 0 + 28) / (40 + 48 + 100))

    def test_blocks_above_the_classes_are_left_out(self):
        events = [(ALLOCATE, 0, 1, 16), (study.REALLOC, 0, 1, 100_000)]
        self.assertAlmostEqual(study.simulate(events, [16, 65536]).held, 1 / 16 / 2)


if __name__ == "__main__":
    unittest.main()
