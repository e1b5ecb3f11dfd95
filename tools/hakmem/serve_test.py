#!/usr/bin/env python3
"""`hakmem serve`, asked as browsers and collectors ask it.

Usage: serve_test.py LIBRARY HARDENED HAKMEM PROGRAM
"""
import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest

from openmetrics_text import parse_openmetrics
from planted_process import PlantedProcessTest
from protobuf_fields import fields

LIBRARY, HARDENED, HAKMEM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:5])
MIB = 1 << 20
# Fields of pprof's messages.
SAMPLE, STRING, DURATION_NS = 2, 6, 10
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def may_become_another():
    with open("/proc/self/uid_map", encoding="ascii") as file:
        users = sum(int(line.split()[2]) for line in file)
    return os.geteuid() == 0 and users > 65534 and shutil.which("setpriv")


def has_networks_of_its_own():
    return os.geteuid() == 0 and shutil.which("unshare") and not subprocess.run(
        ["unshare", "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class ServeTest(PlantedProcessTest):
    def start(self, *command, library=LIBRARY, **options):
        return super().start(*command, library=library, HAKMEM_PROFILE_BYTES="16K", **options)

    def serve(self, *flags, before=(HAKMEM,), **how):
        """A server of its own, and where it answers."""
        server = subprocess.Popen([*before, "serve", *flags], stdout=subprocess.PIPE, text=True, **how)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.send_signal, signal.SIGTERM)
        self.address = re.fullmatch(r"hakmem serve: (?:http://)?(.*)\n", server.stdout.readline())[1]
        return server

    def serve_anywhere(self, *flags, **how):
        return self.serve("--listen=127.0.0.1:0", *flags, **how)

    def ask(self, path, method="GET", connection=None, **headers):
        """The answer's status, headers and body."""
        connection = connection or http.client.HTTPConnection(self.address)
        with contextlib.closing(connection):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def text(self, path, **how):
        status, _, body = self.ask(path, **how)
        self.assertEqual(status, 200, body)
        return body.decode()

    def test_metrics_of_all_processes(self):
        processes = [self.start(PROGRAM, "hold", "leak"), self.start(PROGRAM, "hold", "mixed", library=HARDENED)]
        self.serve_anywhere()
        status, headers, body = self.ask("/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, OPENMETRICS))
        samples = parse_openmetrics(body.decode())
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            groups = {line.split(":", 2)[2] for line in file.read().splitlines()}
        for process, variant in zip(processes, ("release", "hardened")):
            own = {(name, labels): value for (name, labels), value in samples.items()
                   if labels and 'pid="%d"' % process.pid in labels}
            # Each label of each sample.
            for _, labels in own:
                found = dict(re.findall(r'(\w+)="([^"]*)"', labels))
                self.assertEqual(found["program"], "planted_program")
                self.assertIn(found["cgroup"], groups)
            values = {name: value for (name, labels), value in own.items()}
            alone = subprocess.run([HAKMEM, "stats", "--openmetrics", str(process.pid)], capture_output=True, text=True,
                                   check=True).stdout
            self.assertEqual(set(values), {name for name, _ in parse_openmetrics(alone)}
                             | {"hakmem_live_bytes", "hakmem_process_info"} - self.unsampled(own))
            self.assertGreater(values["hakmem_resident_bytes"], MIB)
            info, = (labels for name, labels in own if name == "hakmem_process_info")
            self.assertIn('variant="%s"' % variant, info)
        self.assertGreaterEqual(samples["hakmem_serve_processes", None], 2)
        self.assertEqual(samples["hakmem_serve_processes_left_out", None], 0)

    @staticmethod
    def unsampled(samples):
        """What a variant that does not sample lacks."""
        return set() if "hakmem_live_bytes" in {name for name, _ in samples} else {"hakmem_live_bytes"}

    def test_a_library_for_openmetrics_reads_them(self):
        from prometheus_client.openmetrics import parser
        self.start(PROGRAM, "hold", "leak")
        self.serve_anywhere()
        text = self.text("/metrics")
        families = list(parser.text_string_to_metric_families(text))
        self.assertEqual(sum(len(family.samples) for family in families), len(parse_openmetrics(text)))
        self.assertEqual({family.type for family in families}, {"counter", "gauge"})

    def test_a_program_with_any_name(self):
        name = 'a"b\\c\nd'
        link = self.folder / name
        link.symlink_to(PROGRAM)
        process = self.start(str(link), "hold", "leak")
        self.serve_anywhere()
        samples = parse_openmetrics(self.text("/metrics"))
        self.assertTrue([labels for _, labels in samples if labels and 'pid="%d",program="a\\"b\\\\c' % process.pid in labels])
        self.assertIn("a&quot;b\\c", self.text("/"))
        self.assertTrue(self.process_told(process)["program"].startswith('a"b\\c'))

    def test_a_program_with_a_long_name(self):
        name = "a_long_name_" * 5
        process = self.start(shutil.copy(PROGRAM, self.folder / name), "hold", "leak")
        self.serve_anywhere()
        self.assertEqual(self.process_told(process)["program"], name)
        alone = subprocess.run([HAKMEM, "stats", "--openmetrics", "--pages", str(process.pid)], capture_output=True,
                               text=True, check=True).stdout
        for text in (self.text("/metrics"), alone):
            own = {sample: labels for sample, labels in parse_openmetrics(text)
                   if labels and 'pid="%d"' % process.pid in labels}
            # All of it, by one name that is cut.
            self.assertIn("hakmem_resident_bytes", own)
            self.assertIn("hakmem_failures_total", own)
            self.assertEqual({re.search('program="([^"]*)"', labels)[1] for labels in own.values()}, {name[:32]})

    def test_a_process_without_a_sample_yet(self):
        process = super().start(PROGRAM, "hold", "nothing", library=LIBRARY, HAKMEM_PROFILE_BYTES="1G")
        self.serve_anywhere()
        # One in 10,000 of such processes has a sample by chance.
        page = self.text("/")
        if self.process_told(process)["live_bytes"] is None:
            self.assertRegex(page, r'heap\?pid=%d"(?s:.*?)<span>-</span>(?s:.*?)heap\?pid=%d"' % (process.pid, process.pid))
        self.assertEqual(self.ask("/debug/pprof/heap?program=planted_program")[0], 200)
        self.assertIn("allocated too little", self.text("/heap?pid=%d" % process.pid))

    def process_told(self, process):
        report = json.loads(self.text("/processes"))
        self.assertEqual((report["schema"], report["version"]), ("hakmem-processes", 1))
        found, = (each for each in report["processes"] if each["pid"] == process.pid)
        return found

    def test_the_largest_processes_have_metrics_and_the_others_are_counted(self):
        small = [self.start(PROGRAM, "hold", "mixed") for _ in range(2)]
        self.serve_anywhere("--most=1")
        samples = parse_openmetrics(self.text("/metrics"))
        all_pids = {each["pid"] for each in json.loads(self.text("/processes"))["processes"]}
        pids = {re.search(r'pid="(\d+)"', labels)[1] for _, labels in samples if labels}
        self.assertEqual(len(pids), 1)
        self.assertLessEqual({process.pid for process in small}, all_pids)
        self.assertEqual(samples["hakmem_serve_processes_left_out", None], samples["hakmem_serve_processes", None] - 1)

    def test_growth_since_a_process_was_first_seen(self):
        process = self.start(PROGRAM, "hold", "step")
        self.serve_anywhere()
        before = self.process_told(process)
        process.stdin.write("s" * 8)
        process.stdin.flush()
        # Before it says that, it tells its statistics.
        for _ in range(8 + 1):
            process.stdout.readline()
        after = self.process_told(process)
        self.assertEqual(after["first_seen_time"], before["first_seen_time"])
        self.assertGreater(after["growth_bytes"], before["growth_bytes"] + MIB)
        self.assertEqual(after["resident_bytes"] - after["growth_bytes"], before["resident_bytes"] - before["growth_bytes"])

    def test_the_page(self):
        process = self.start(PROGRAM, "hold", "leak")
        self.serve_anywhere()
        status, headers, body = self.ask("/")
        self.assertEqual((status, headers["Content-Type"], headers["Refresh"]), (200, "text/html; charset=utf-8", "10"))
        self.assertIn('<a href="heap?pid=%d">planted_program</a>' % process.pid, body.decode())
        self.assertIn("PlantedLeak", self.text("/heap?pid=%d" % process.pid))

    def test_profiles_are_those_of_the_command(self):
        process = self.start(PROGRAM, "hold", "leak")
        self.serve_anywhere()
        own = self.folder / "own"
        subprocess.run([HAKMEM, "heap", "--pprof=%s" % own, str(process.pid)], stdout=subprocess.DEVNULL, check=True)
        _, _, body = self.ask("/debug/pprof/heap?pid=%d" % process.pid)

        def samples(profile):
            return [value for field, value in fields(profile) if field == SAMPLE]
        self.assertEqual(samples(gzip.decompress(body)), samples(own.read_bytes()))
        _, _, body = self.ask("/debug/pprof/allocs?program=planted_program")
        self.assertIn(b"alloc_space", gzip.decompress(body))

    def test_of_several_processes_one_cannot_be_read(self):
        program = shutil.copy(PROGRAM, self.folder / ("of-%d" % os.getpid()))
        process, other = (self.start(program, "hold", "leak") for _ in range(2))
        # Where its sites are: what is looked at first of it is whole.
        self.gdb(other, "set *(unsigned long*)((unsigned long*)&hakmem_heap_tables)[10] = 8")
        self.serve_anywhere()
        self.assertEqual(self.ask("/heap?pid=%d" % other.pid)[0], 404)
        named = "program=%s" % program.name
        self.assertIn("%s[%d]" % (program.name, process.pid), self.text("/heap?" + named))
        for path in ("/debug/pprof/heap?", "/debug/pprof/heap?seconds=1&"):
            self.assertEqual(self.ask(path + named)[0], 200)

    def test_a_difference_of_a_process_that_does_nothing(self):
        process = self.start(PROGRAM, "hold", "leak")
        self.serve_anywhere()
        status, _, body = self.ask("/debug/pprof/heap?pid=%d&seconds=1" % process.pid)
        self.assertEqual(status, 200)
        message = list(fields(gzip.decompress(body)))
        self.assertEqual([value for field, value in message if field == SAMPLE], [])
        self.assertGreaterEqual(dict(message)[DURATION_NS], 10**9)

    def test_what_is_wrong_is_said(self):
        self.serve_anywhere()
        other = self.start(PROGRAM, "hold", "leak", library=None)
        for path, status, words in (
                ("/debug/pprof/heap", 400, "name a process"),
                ("/debug/pprof/heap?pid=x", 400, "name a process"),
                ("/debug/pprof/heap?pid=1&seconds=x", 400, "seconds is a number"),
                ("/debug/pprof/heap?pid=1&seconds=601", 400, "seconds is a number"),
                ("/debug/pprof/heap?program=nobody", 404, "no process of that name"),
                ("/debug/pprof/heap?pid=%d" % 2 ** 30, 404, "there is no process"),
                ("/heap?pid=%d" % other.pid, 404, "there is no hakmem in process"),
                ("/nothing", 404, "/metrics")):
            answered, _, body = self.ask(path)
            self.assertEqual(answered, status, path)
            self.assertIn(words, body.decode(), path)
        self.assertEqual(self.ask("/metrics", method="POST")[0], 405)
        self.assertEqual(self.ask("/debug/pprof/symbol", method="POST")[2], b"num_symbols: 0\n")
        self.assertEqual(self.ask("/" + "x" * 5000)[0], 414)
        status, _, body = self.ask("/metrics", method="HEAD")
        self.assertEqual((status, body), (200, b""))

    def test_who_does_not_know_the_token_is_told_nothing(self):
        token = self.folder / "token"
        token.write_text("secret\n")
        self.serve_anywhere("--token-file=%s" % token)
        for headers in ({}, {"Authorization": "Bearer secreT"}, {"Authorization": "Bearer secret2"},
                        {"Authorization": "secret"}):
            status, answered, body = self.ask("/metrics", **headers)
            self.assertEqual((status, answered["WWW-Authenticate"]), (401, "Bearer"))
            self.assertNotIn(b"hakmem_", body)
        self.assertIn("hakmem_serve", self.text("/metrics", Authorization="Bearer secret"))
        self.assertIn("hakmem_serve", self.text("/metrics", Authorization="Bearer secret", Host="any.example"))
        self.assertEqual(self.text("/-/healthy"), "healthy\n")

    def test_pages_of_other_sites_are_told_nothing(self):
        self.serve_anywhere()
        self.assertEqual(self.ask("/metrics", Host="other.example")[0], 403)
        for host in "localhost:1", "127.0.0.1", "[::1]:4256":
            self.assertEqual(self.ask("/metrics", Host=host)[0], 200)

    def test_a_unix_socket(self):
        path = str(self.folder / "socket")
        server = self.serve("--unix=" + path)
        self.assertEqual(self.address, path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o660)
        self.assertIn("hakmem_serve", self.text("/metrics", connection=UnixConnection(path)))
        second = subprocess.run([HAKMEM, "serve", "--unix=" + path], capture_output=True, text=True)
        self.assertEqual(second.returncode, 1)
        self.assertIn("cannot listen at " + path, second.stderr)
        server.kill()
        server.wait()
        # Nobody listens any more.
        self.serve("--unix=" + path)
        self.assertEqual(self.text("/-/healthy", connection=UnixConnection(path)), "healthy\n")

    def test_files_that_are_no_sockets_stay(self):
        for name in "file", "x" * 120:
            path = self.folder / name
            path.write_text("mine")
            done = subprocess.run([HAKMEM, "serve", "--unix=%s" % path], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(path.read_text(), "mine")

    def test_nobody_else_listens_at_the_same_port(self):
        self.serve_anywhere()
        second = subprocess.run([HAKMEM, "serve", "--listen=" + self.address], capture_output=True, text=True)
        self.assertEqual(second.returncode, 1)
        self.assertIn("cannot listen at " + self.address, second.stderr)

    def test_a_signal_ends_it_and_who_waits(self):
        process = self.start(PROGRAM, "hold", "leak")
        server = self.serve_anywhere()
        connection = http.client.HTTPConnection(self.address)
        self.addCleanup(connection.close)
        connection.request("GET", "/debug/pprof/heap?pid=%d&seconds=600" % process.pid)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)

    def test_wrong_command_lines(self):
        for flags, status, words in ((["--listen=here"], 2, "HOST:PORT"), (["--listen=::1:80"], 2, "HOST:PORT"),
                                     (["--listen=127.0.0.1:65536"], 2, "HOST:PORT"), (["1"], 2, "no arguments"),
                                     (["--token-file=/dev/null"], 1, "no token"),
                                     (["--unix=/" + "x" * 200], 1, "too long")):
            done = subprocess.run([HAKMEM, "serve", *flags], capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)

    def test_nothing_changes_in_the_processes(self):
        process = self.start(PROGRAM, "hold", "leak")

        def state():
            folder = "/proc/%d" % process.pid
            with open(folder + "/status", encoding="utf-8") as file:
                status = re.findall(r"^(?:Threads|TracerPid|SigPnd|ShdPnd|SigCgt|FDSize):.*$", file.read(), re.MULTILINE)
            return status, sorted(os.listdir(folder + "/fd")), sorted(os.listdir(folder + "/task"))
        before = state()
        self.serve_anywhere()
        for path in "/metrics", "/", "/debug/pprof/heap?pid=%d" % process.pid:
            self.ask(path)
        self.assertEqual(state(), before)

    @unittest.skipUnless(may_become_another(), "needs root, outside of a namespace of one user")
    def test_with_one_capability(self):
        process = self.start(PROGRAM, "hold", "leak")
        # By its descriptor: nobody may go to where it lies.
        command = os.open(HAKMEM, os.O_RDONLY)
        self.addCleanup(os.close, command)
        server = self.serve_anywhere(pass_fds=[command], before=[
            "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all,+sys_ptrace",
            "--inh-caps=-all,+sys_ptrace", "--ambient-caps=+sys_ptrace", "/proc/self/fd/%d" % command])
        self.assertGreater(self.process_told(process)["live_bytes"], 8 * MIB)
        self.assertEqual(self.ask("/debug/pprof/heap?pid=%d" % process.pid)[0], 200)
        self.assertIsNone(server.poll())

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_root_keeps_little(self):
        server = self.serve_anywhere()
        with open("/proc/%d/status" % server.pid, encoding="utf-8") as file:
            status = dict(re.findall(r"^(\w+):\t(.*)$", file.read(), re.MULTILINE))
        # CAP_DAC_READ_SEARCH and CAP_SYS_PTRACE.
        self.assertEqual(int(status["CapEff"], 16) & ~(1 << 2 | 1 << 19), 0)
        self.assertEqual(status["CapEff"], status["CapPrm"])
        self.assertEqual(status["NoNewPrivs"], "1")

    @unittest.skipUnless(has_networks_of_its_own(), "needs root, and unshare --net")
    def test_root_listens_at_a_low_port(self):
        # A new network, in which nobody has the port.
        self.serve("--listen=0.0.0.0:80", before=["unshare", "--net", HAKMEM], stderr=subprocess.DEVNULL)
        self.assertEqual(self.address, "0.0.0.0:80")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
