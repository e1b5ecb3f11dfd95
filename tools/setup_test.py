#!/usr/bin/env python3
"""What tools/setup.sh says to who may not install packages."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOBODY = 65534


class SetupTest(unittest.TestCase):
    def test_says_what_is_missing_and_why_it_ends(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            folder.chmod(0o755)
            for path in ("tools/setup.sh", "tools/packages.txt", "tools/real_programs/packages.txt"):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / path, folder / path)
            # Neither sudo nor any package is there.
            (folder / "bin").mkdir()
            for command in ("bash", "dirname", "id", "mktemp", "sed", "sort"):
                (folder / "bin" / command).symlink_to(shutil.which(command))
            (folder / "tmp").mkdir()
            (folder / "tmp").chmod(0o777)
            done = subprocess.run(["bash", "tools/setup.sh", "--try"], cwd=folder, capture_output=True, text=True,
                                  user=NOBODY if os.getuid() == 0 else None,
                                  env={"PATH": str(folder / "bin"), "TMPDIR": str(folder / "tmp")})
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"packages are missing \(.*\bbinutils\b.*\), and this is neither root")
            self.assertEqual(list((folder / "tmp").iterdir()), [])


if __name__ == "__main__":
    unittest.main()
