#!/usr/bin/env python3
"""Prometheus and pprof that ask `hakmem serve`, and the files that go with it.

Usage: collectors_test.py LIBRARY HAKMEM PROGRAM RULES DASHBOARD UNIT
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unittest
import urllib.parse
import urllib.request

from planted_process import PlantedProcessTest

LIBRARY, HAKMEM, PROGRAM, RULES, DASHBOARD, UNIT = (os.path.abspath(path) for path in sys.argv[1:7])
MIB = 1 << 20
CONFIGURATION = """
global: {scrape_interval: 3s, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
  - job_name: hakmem
    authorization: {credentials: secret}
    static_configs: [{targets: ["%s"]}]
"""


def expressions():
    """Those of the dashboard, as Grafana would fill them in."""
    with open(DASHBOARD, encoding="utf-8") as file:
        dashboard = json.load(file)
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*").replace("$program", ".*")


class ServerTest(PlantedProcessTest):
    def start(self, *command):
        return super().start(*command, library=LIBRARY, HAKMEM_PROFILE_BYTES="16K")

    def serve(self, *flags):
        server = subprocess.Popen([HAKMEM, "serve", "--listen=127.0.0.1:0", *flags], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.send_signal, signal.SIGTERM)
        return re.fullmatch(r"hakmem serve: http://(.*)\n", server.stdout.readline())[1]


class PprofTest(ServerTest):
    def pprof(self, address, path):
        go = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin")
        if go is None:
            self.skipTest("needs go")
        environment = {**os.environ, "HOME": str(self.folder), "GOFLAGS": "", "GOTOOLCHAIN": "local"}
        done = subprocess.run([go, "tool", "pprof", "-top", "-unit=kB", "http://%s%s" % (address, path)],
                              env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_pprof_takes_profiles(self):
        process = self.start(PROGRAM, "hold", "leak")
        address = self.serve()
        live = self.pprof(address, "/debug/pprof/heap?pid=%d" % process.pid)
        self.assertRegex(live, r"(?s)Type: inuse_space.*kB.*PlantedLeak")
        allocated = self.pprof(address, "/debug/pprof/allocs?program=planted_program")
        self.assertRegex(allocated, r"(?s)Type: alloc_space.*kB.*Churn")


class PrometheusTest(ServerTest):
    def setUp(self):
        super().setUp()
        if shutil.which("prometheus") is None:
            self.skipTest("needs prometheus")

    def serve_with_token(self):
        token = self.folder / "token"
        token.write_text("secret\n")
        return self.serve("--token-file=%s" % token)

    def start_prometheus(self, target):
        configuration = self.folder / "prometheus.yml"
        configuration.write_text(CONFIGURATION % (RULES, target))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = "127.0.0.1:%d" % port
        prometheus = subprocess.Popen(
            ["prometheus", "--config.file=%s" % configuration, "--storage.tsdb.path=%s" % (self.folder / "data"),
             "--web.listen-address=" + self.address], stderr=subprocess.PIPE, text=True)
        self.addCleanup(prometheus.stderr.close)
        self.addCleanup(prometheus.wait)
        self.addCleanup(prometheus.terminate)
        for line in prometheus.stderr:
            if "Server is ready" in line:
                break
        self.assertIsNone(prometheus.poll())

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen("http://%s/api/v1/%s?%s" % (self.address, path, query)) as answer:
            told = json.load(answer)
        self.assertEqual(told["status"], "success", told)
        return told["data"]

    def results(self, expression):
        """Once there are any."""
        while True:
            found = self.api("query", query=expression)["result"]
            if found:
                return found
            for target in self.api("targets")["activeTargets"]:
                # On a busy machine an answer may be late.
                self.assertRegex(target["lastError"], "^$|deadline exceeded")

    def test_it_reads_the_metrics(self):
        process = self.start(PROGRAM, "hold", "leak")
        self.start_prometheus(self.serve_with_token())
        live, = self.results('hakmem_live_bytes{pid="%d"}' % process.pid)
        self.assertEqual(live["metric"]["program"], "planted_program")
        self.assertTrue(live["metric"]["cgroup"].startswith("/"))
        self.assertLess(abs(int(live["value"][1]) - 16 * MIB), 4 * MIB)
        calls = self.results('hakmem_allocations_total{pid="%d"}' % process.pid)
        self.assertEqual({call["metric"]["route"] for call in calls}, {"tiny", "pool", "span", "huge"})
        types = self.api("metadata")
        self.assertEqual(types["hakmem_live_bytes"][0]["type"], "gauge")
        self.assertEqual(types["hakmem_live_bytes"][0]["unit"], "bytes")
        # The rules and the dashboard mean metrics that there are.
        for expression in expressions():
            self.api("query", query=expression)
            for name in re.findall(r"\bhakmem_\w+", expression):
                self.assertTrue(self.results(name), expression)
        with open(RULES, encoding="utf-8") as file:
            names = set(re.findall(r"\bhakmem_\w+", file.read()))
        for name in names:
            self.assertTrue(self.results(name), name)
        # Prometheus evaluates each second.
        while True:
            rules = [rule for group in self.api("rules")["groups"] for rule in group["rules"]]
            if all(rule["health"] != "unknown" for rule in rules):
                break
        self.assertEqual({rule["health"] for rule in rules}, {"ok"}, rules)
        self.assertEqual(len(rules), 6)

    def test_the_rules_are_right(self):
        done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


class UnitTest(PlantedProcessTest):
    def test_systemd_takes_the_unit(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("needs systemd")
        unit = self.folder / "hakmem-serve.service"
        with open(UNIT, encoding="utf-8") as file:
            # There may be no pages of the manual.
            text = re.sub(r"Documentation=.*\n", "", file.read())
        self.assertIn("/usr/bin/hakmem serve", text)
        unit.write_text(text.replace("/usr/bin/hakmem", HAKMEM))
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)],
                              capture_output=True, text=True)
        # What is said of this machine's other units is no matter.
        said = [line for line in done.stderr.splitlines() if unit.name in line]
        self.assertEqual((done.returncode, said), (0, []), done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[7:])
