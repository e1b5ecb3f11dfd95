#!/usr/bin/env python3
"""Tests of the source release: it builds without warnings, runs, and installs."""
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import amalgamate

ROOT = amalgamate.ROOT
# At night the source is compiled, checked and installed as a whole, and not only read by a compiler.
NIGHTLY = os.environ.get("HAK_NIGHTLY") == "1"
COMPILERS = {"gcc": ("g++-12", "gcc-12"), "clang": ("clang++-19", "clang-19")}


def run(command, **kwargs):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **kwargs)
    assert done.returncode == 0, "%s\n%s" % (command, done.stdout)
    return done.stdout


class RenamingTest(unittest.TestCase):
    def test_finds_what_an_unnamed_namespace_declares(self):
        text = ("namespace {\n\nstruct alignas(64) Pair {\n  int first;\n};\nconstexpr unsigned kMost = 3;\n"
                "constinit FutexLock g_lock;\nint g_count ABSL_GUARDED_BY(g_lock) = 0;\n"
                "bool Sum(int a,\n         int b) {\n  return First(a);\n}\n\n}  // namespace\nint Outside() { return 1; }\n")
        self.assertEqual(amalgamate.declared(amalgamate.unnamed_parts(text)),
                         {"Pair", "kMost", "g_lock", "g_count", "Sum"})

    def test_leaves_members_literals_and_comments_alone(self):
        text = 'Take(a.Take(1), p->Take(), X::Take, hakmem::Take, "Take");  // Take'
        self.assertEqual(amalgamate.rename(text, {"Take"}, "InFile"),
                         'TakeInFile(a.Take(1), p->Take(), X::Take, hakmem::TakeInFile, "Take");  // Take')

    def test_names_of_two_files_clash(self):
        texts = {"a.cc": "namespace {\nconstexpr int kA = 1;\nconstexpr int kB = 1;\n}  // namespace\n",
                 "b.cc": "namespace {\nconstexpr int kA = 2;\n}  // namespace\n",
                 "c.h": "inline constexpr int kB = 1;\n"}
        self.assertEqual(amalgamate.clashes(texts, ["a.cc", "b.cc"]), {"a.cc": {"kA", "kB"}, "b.cc": {"kA"}})

    def test_a_name_of_a_source_is_none_of_its_headers(self):
        texts = {"a.cc": '#include "b.h"\nnamespace {\nint Sum(int a) { return a; }\nint Own() { return 1; }\n}  // namespace\n',
                 "b.h": '#include "absl/c.h"\n#include "d.h"\n', "d.h": '#include "b.h"\nint Sum(int a, int b);\n',
                 "other.h": "int Own();\n"}
        self.assertEqual(amalgamate.double_meanings(texts, ["a.cc"]), {"a.cc": {"Sum"}})
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertRaises(SystemExit, amalgamate.amalgamate, texts, pathlib.Path(folder))
            self.assertEqual(os.listdir(folder), [])
        self.assertIn("a.cc and a header that it includes both declare Sum", said.getvalue())


class IncludesTest(unittest.TestCase):
    def test_of_one_system_stay_where_that_is_asked(self):
        source = amalgamate.Amalgamation({})
        source.emit("a.cc", "#include <cstdio>\n#if defined(__x86_64__)\n#include <cpuid.h>\n#endif\n#include <new>\n")
        self.assertEqual(source.system, {"cstdio", "new"})
        self.assertIn("#if defined(__x86_64__)\n#include <cpuid.h>\n#endif", "\n".join(source.out))


class FlagsTest(unittest.TestCase):
    def test_are_those_of_the_bazel_build(self):
        copts = (ROOT / "tools/build/copts.bzl").read_text()
        wanted = []
        compiling = []
        for name in ("_LIBRARY_SEMANTICS", "_X86_BRANCHES", "_ARM64_BRANCHES", "_LIBRARY_SPEED", "PRODUCT_LINKOPTS"):
            part = re.search(r"^%s = \[(.*?)\]$" % name, copts, re.MULTILINE | re.DOTALL)[1]
            compiling = wanted[:] if name == "PRODUCT_LINKOPTS" else []
            wanted += [flag for flag in re.findall(r'"(-[^"]*)"', part) if flag not in ("-O2", "-gdwarf-4") and "frame-larger" not in flag]
        self.assertGreater(len(wanted), 15)
        for name in ("Makefile", "CMakeLists.txt"):
            given = (amalgamate.DIST / name).read_text().replace("(", " ").replace(")", " ").split()
            self.assertEqual([flag for flag in wanted if flag not in given], [], name)
        given = re.findall(r'"(-[^"]*)"', (amalgamate.DIST / "rust/hakmem/build.rs").read_text())
        self.assertGreater(len(compiling), 10)
        self.assertEqual([flag for flag in compiling if flag not in given], [], "build.rs")


class RefusalTest(unittest.TestCase):
    def fails_with(self, words, output, **environment):
        done = subprocess.run([ROOT / "tools/amalgamate.py", output], env=dict(os.environ, **environment), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Ahakmem: .*%s.*\n\Z" % words)

    def test_nothing_is_written_among_the_parts(self):
        before = sorted(amalgamate.DIST.rglob("*"))
        for output in (ROOT, amalgamate.DIST, amalgamate.DIST / "tests/here"):
            self.fails_with("name another folder", output, HAK_BAZEL="/nowhere/bazel")
        self.assertEqual(sorted(amalgamate.DIST.rglob("*")), before)

    def test_without_bazel(self):
        with tempfile.TemporaryDirectory() as folder:
            self.fails_with("cannot run /nowhere/bazel: .*tools/setup.sh", folder, HAK_BAZEL="/nowhere/bazel")


class SourceReleaseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        # What is built there is checked there, whatever the folder is called.
        cls.source = pathlib.Path(cls.folder.name) / "hakmem: sources"
        run([ROOT / "tools/amalgamate.py", cls.source])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def make(self, compiler, variant, *targets):
        cxx, cc = COMPILERS[compiler]
        return run(["make", "-C", self.source, "-j2", "BUILD=build-" + compiler, "VARIANTS=" + variant, "CXX=env " + cxx,
                    "CC=env " + cc, "CXXFLAGS=-O2 -Wall -Wextra -Werror", *targets])

    def test_is_the_same_each_time(self):
        again = pathlib.Path(self.folder.name) / "again"
        run([ROOT / "tools/amalgamate.py", again])
        run(["diff", "-r", "--exclude=build*", self.source, again])

    def test_the_compiler_is_whatever_the_system_has(self):
        for given, compiler in (({}, "c++"), ({"CXX": "clang++"}, "clang++")):
            environment = {name: value for name, value in os.environ.items() if name != "CXX"}
            commands = run(["make", "-n", "-C", self.source, "BUILD=build-none"], env={**environment, **given})
            self.assertEqual({line.split()[0] for line in commands.split("\n") if " -std=" in line}, {compiler})

    def test_no_flag_of_others_changes_what_the_source_means(self):
        # Those of distributions: hakmem would depend on libstdc++, and its archive not link with C.
        flags = "-O3 -flto=auto -ffat-lto-objects -fexceptions -std=c++23"
        commands = run(["make", "-n", "-C", self.source, "BUILD=build-none", "VARIANTS=release", "CXXFLAGS=" + flags])
        compiling = [line for line in commands.split("\n") if " -c " in line]
        self.assertEqual(len(compiling), 2)
        for line in compiling:
            for pattern, wanted in ((r"-std=\S+", "-std=c++20"), (r"-f(?:no-)?lto\b", "-fno-lto"), (r"-O\d", "-O3")):
                self.assertEqual(re.findall(pattern, line)[-1], wanted)
        self.assertEqual([re.findall(r"-f(?:no-)?exceptions", line)[-1] for line in compiling], ["-fno-exceptions", "-fexceptions"])
        for name in ("hakmem.cc", "hakmem_new.cc"):
            macros = run(["g++-12", "-std=c++20", "-E", "-dM", "-Wp,-D_GLIBCXX_ASSERTIONS", self.source / name])
            self.assertEqual(re.findall(r"#define _GLIBCXX\w*_ASSERTIONS\b", macros), ["#define _GLIBCXX_NO_ASSERTIONS"])

    def test_compilers_have_nothing_to_say(self):
        for compiler, variant in (("g++-12", "release"), ("clang++-19", "hardened")):
            commands = run(["make", "-n", "-C", self.source, "BUILD=build-none", "VARIANTS=" + variant, "CXX=" + compiler,
                            "CXXFLAGS=-O2 -Wall -Wextra -Werror"])
            compiling = [line for line in commands.split("\n") if " -c " in line]
            self.assertEqual(len(compiling), 2)
            for line in compiling:
                run(line + " -fsyntax-only", shell=True, cwd=self.source)

    def test_a_build_sets_the_first_refill_within_bounds(self):
        for blocks, is_possible in ((1, True), (30, True), (0, False), (31, False)):
            done = subprocess.run(["clang++-19", "-std=c++20", "-w", "-fsyntax-only", "-DHAK_BUILD_FIRST_REFILL=%d" % blocks,
                                   self.source / "hakmem.cc"], stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode == 0, is_possible, done.stderr)
            self.assertEqual("static assertion failed" in done.stderr, not is_possible)

    def test_names_its_revision(self):
        macros = run(["clang++-19", "-std=c++20", "-E", "-dM", self.source / "hakmem.cc"])
        self.assertRegex(macros, r'#define BUILD_SCM_REVISION "([0-9a-f]{12,}(-changed)?|unknown)"\n')

    def test_claims_no_checked_branches_of_its_own(self):
        text = run(["clang++-19", "-std=c++20", "-E", "-fcf-protection=none", self.source / "hakmem.cc"])
        self.assertIn("const char* Revision()", text)
        self.assertNotIn(".note.gnu.property", text)

    @unittest.skipUnless(NIGHTLY, "the source is compiled with HAK_NIGHTLY=1")
    def test_release_with_gcc_installs_and_is_found(self):
        prefix = pathlib.Path(self.folder.name) / "prefix"
        # As people do: where it goes is said last.
        checked = self.make("gcc", "release", "check")
        self.assertIn("check: passed: release\n", checked)
        # Of the programs that it has aborted.
        self.assertNotIn("Aborted", checked)
        mask = os.umask(0o077)
        self.addCleanup(os.umask, mask)
        self.make("gcc", "release", "PREFIX=%s" % prefix, "install")
        os.umask(mask)
        # Others than who installs it are to read it.
        self.assertEqual([path for path in prefix.rglob("*") if path.stat().st_mode & 0o444 != 0o444], [])
        links = [os.readlink(prefix / "lib" / name) for name in ("libhakmem.so", "libhakmem.so.0")]
        self.assertEqual(links[0], "libhakmem.so.0")
        self.assertRegex(links[1], r"^libhakmem\.so\.0\.\d+\.\d+$")
        pc = (prefix / "lib/pkgconfig/hakmem.pc").read_text()
        variables = dict(re.findall(r"^(\w+)=(.*)$", pc, re.MULTILINE))
        self.assertEqual(variables["libdir"], str(prefix / "lib"))
        self.assertRegex(pc, r"(?m)^Version: \d+\.\d+\.\d+$")
        program = pathlib.Path(self.folder.name) / "program"
        program.with_suffix(".c").write_text(
            "#include <hakmem/hakmem.h>\n#include <stdio.h>\n"
            'int main(void) { printf("%d.%d.%d %s", HAKMEM_VERSION_MAJOR, HAKMEM_VERSION_MINOR, HAKMEM_VERSION_PATCH,'
            " hakmem_version()); return 0; }\n")
        run(["gcc-12", program.with_suffix(".c"), "-o", program, "-I%s" % variables["includedir"],
             "-L%s" % variables["libdir"], "-lhakmem", "-Wl,-rpath,%s" % variables["libdir"]])
        header, library = run([program]).split()
        self.assertEqual(header, library)

    def find_package(self, prefix):
        """What CMake says of a project that wants what is installed there."""
        project = pathlib.Path(self.folder.name) / "finding"
        shutil.rmtree(project, ignore_errors=True)
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(other LANGUAGES C)\nfind_package(hakmem REQUIRED)\n"
            "get_target_property(headers hakmem::hakmem INTERFACE_INCLUDE_DIRECTORIES)\n"
            "get_target_property(library hakmem::hakmem IMPORTED_LOCATION)\nmessage(STATUS \"has ${library} ${headers}\")\n"
            "if(TARGET hakmem::hakmem-tracing)\n  get_target_property(library hakmem::hakmem-tracing IMPORTED_LOCATION)\n"
            "  message(STATUS \"tracing ${library}\")\nendif()\n")
        done = subprocess.run(["cmake", "-S", project, "-B", project / "build", "-DCMAKE_PREFIX_PATH=%s" % prefix], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    @unittest.skipIf(shutil.which("cmake") is None, "there is no cmake")
    def test_is_found_where_it_was_moved_to(self):
        # What is installed need be no library for this.
        build = pathlib.Path(self.folder.name) / "build-moved"
        run(["cmake", "-S", self.source, "-B", build, "-DHAKMEM_VARIANTS=release", "-DCMAKE_INSTALL_PREFIX=/nowhere"])
        version = re.search(r"^CMAKE_PROJECT_VERSION:.*=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)[1]
        for name in ("libhakmem.a", "libhakmem.so", "libhakmem.so.0", "libhakmem.so.%s" % version):
            (build / name).touch()
        prefix = pathlib.Path(self.folder.name) / "another prefix"
        run(["cmake", "--install", build, "--prefix", prefix])
        status, said = self.find_package(prefix)
        self.assertEqual(status, 0, said)
        self.assertIn("has %s %s\n" % (prefix / "lib/libhakmem.so.0", prefix / "include"), said)
        library = prefix / "lib/libhakmem-tracing.so.0"
        library.touch()
        self.assertIn("tracing %s\n" % library, self.find_package(prefix)[1])
        library.unlink()
        (prefix / "lib/libhakmem.so.0").unlink()
        status, said = self.find_package(prefix)
        self.assertNotEqual(status, 0)
        self.assertRegex(said, r"there is no library of\s+hakmem's in")

    @unittest.skipIf(shutil.which("cmake") is None, "there is no cmake")
    def test_is_a_folder_of_another_project(self):
        project = pathlib.Path(self.folder.name) / "project"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(other LANGUAGES C CXX)\n"
            "set(HAKMEM_VARIANTS release)\nset(CMAKE_CXX_STANDARD 17)\nset(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)\n"
            "add_subdirectory(\"%s\" hakmem)\nforeach(kind hakmem hakmem-static)\n"
            "  add_executable(on-${kind} program.c)\n  target_link_libraries(on-${kind} hakmem::${kind})\nendforeach()\n"
            % self.source)
        (project / "program.c").write_text(
            "#include <hakmem/hakmem.h>\nint main(void) { return hakmem_version()[0] == 0; }\n")
        run(["cmake", "-S", project, "-B", project / "build", "-G", "Unix Makefiles", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
             "-DCMAKE_CXX_FLAGS=-fno-exceptions"])
        # What the project asks for its own sources stands before what ours need.
        commands = re.findall(r'"command": "(.*)"', (project / "build/compile_commands.json").read_text())
        for source, exceptions in (("hakmem.cc", "-fno-exceptions"), ("hakmem_new.cc", "-fexceptions")):
            command, = [each for each in commands if "/" + source in each.split()[-1]]
            for pattern, wanted in ((r"-std=\S+", "-std=c++20"), (r"-f(?:no-)?lto\b", "-fno-lto"),
                                    (r"-f(?:no-)?exceptions", exceptions)):
                self.assertEqual(re.findall(pattern, command)[-1], wanted)
        run(["make", "-C", project / "build", "program.o"])

    @unittest.skipIf(shutil.which("cmake") is None, "there is no cmake")
    def test_cmake_refuses_variants_that_do_not_exist(self):
        for variants in ("hardend", "Hardened", "release hardened"):
            done = subprocess.run(["cmake", "-S", self.source, "-B", self.source / "build-refused", "-DHAKMEM_VARIANTS=" + variants],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r'no\s+variant\s+"%s"' % variants)

    @unittest.skipUnless(NIGHTLY, "the source is compiled with HAK_NIGHTLY=1")
    def test_hardened_with_clang(self):
        self.make("clang", "hardened", "check")


if __name__ == "__main__":
    unittest.main()
