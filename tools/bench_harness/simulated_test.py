#!/usr/bin/python3
"""Tests of the counts that cachegrind makes."""
import pathlib
import tempfile
import unittest

import simulated

ONE = "desc: x\nevents: Ir D1mr Bc Bcm Bi Bim ILmr DLmr DLmw\nfn=f\n1 2 3 4 5 6 7 8 9 10\nsummary: 100 20 7 1 3 1 2 3 4\n"


class SimulatedTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "counts"

    def test_all_processes_that_ended_count(self):
        words = simulated.command(self.folder, simulated.PASSES[0][0])
        self.assertEqual((words[0], words[-1]), ("valgrind", "--branch-sim=yes"))
        (self.folder / "1").write_text(ONE)
        (self.folder / "2").write_text(ONE)
        (self.folder / "3").write_text("desc: x\nevents: Ir\n")
        self.assertEqual(simulated.read(self.folder, simulated.PASSES[0][1]),
                         {"instructions": 200, "branches": 20, "branch_misses": 4, "l1_misses": 40, "cache_misses": 18})

    def test_each_run_begins_anew(self):
        simulated.command(self.folder, ())
        (self.folder / "1").write_text(ONE)
        simulated.command(self.folder, ())
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_pass_of_more_operations_counts_in_relation(self):
        first = simulated.merged(None, {"instructions": 50}, 1000)
        self.assertEqual(first, {"instructions": 50, "operations": 1000})
        self.assertEqual(simulated.merged(first, {"tlb_misses": 30}, 2000), {**first, "tlb_misses": 15})
        self.assertEqual(simulated.merged({"instructions": 5}, {"tlb_misses": 3}, None),
                         {"instructions": 5, "tlb_misses": 3})


if __name__ == "__main__":
    unittest.main()
