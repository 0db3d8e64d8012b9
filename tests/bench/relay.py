#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""relay.py - what a way over relays costs, beside a cable.

Usage: relay.py [figures]        the figures, as a table, each with the bound that it is to keep
Options: --only NAME  --rounds N  --seconds S  --rate MBIT  --build DIR

  shaped    bandwidth through one relay and through two, beside one cable of the same rate
  ring      the diagonal of a ring of four, which goes both ways round, beside one cable
  fair      what a node that relays keeps of a cable for traffic of its own
  cpu       CPU seconds per GiB, of all processes, beside a cable
  latency   half a round trip of 8 B, beside a cable

As root. The links of shaped, ring and fair are veth pairs with tbf, so those figures need no quiet
machine; cpu and latency, whose links have no limit, do. The ranks of those two sleep for a moment
after each pass that moved nothing, so that they leave the CPUs to the relay. It is `serve --relay`,
but in fair a rank. Exit status 1 if a figure misses its bound or a run fails; 77: cannot be
measured here.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
TOP = os.path.dirname(os.path.dirname(HERE))

from nodes import Mesh  # noqa: E402

SKIP = 77
LIMIT_S = 120
MIB = 1 << 20
# Of the ranks of latency and cpu. Each sleep costs some microseconds of a CPU.
PAUSE_US = {"latency": "20", "cpu": "100"}
# The key of the job: nobody connects there.
JOB = {"MASTER_ADDR": "192.0.2.1", "MASTER_PORT": "29500"}
LEAST, MOST = "at least", "at most"


class Failed(Exception):
    pass


class Bench:
    """Nodes, the services that relay on some of them, and ranks."""

    def __init__(self, build, plugin=None):
        self.build = os.path.join(TOP, build)
        self.plugin = plugin or os.path.join(self.build, "libnccl-net-mesh.so")
        self.folder = tempfile.mkdtemp()
        self.mesh = Mesh()
        self.services = {}
        self.count = 0

    def close(self):
        self.services_end()
        self.mesh.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def nodes(self, cables, rate=None):
        """Nodes by their letters; @cables: "ab bc"."""
        self.mesh.add(*sorted(set(cables) - {" "}))
        for i, cable in enumerate(cables.split()):
            self.mesh.link(cable[0], cable[1], i + 1, rate)

    def start(self, node, command, log):
        with open(os.path.join(self.folder, log), "w") as out:
            return subprocess.Popen(self.mesh.command(node, command), stdout=out,
                                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                    env=dict(os.environ, **JOB))

    def log(self, name):
        with open(os.path.join(self.folder, name)) as log:
            return log.read()

    def serve(self, node, under=()):
        """Starts `fi_mesh serve --relay`, and waits until it relays."""
        log = "serve-" + node
        command = list(under) + [os.path.join(self.build, "fi_mesh"), "serve", "--relay"]
        service = self.start(node, command, log)
        self.services[node] = service
        deadline = time.monotonic() + LIMIT_S
        while "relaying for" not in self.log(log):
            if service.poll() is not None or time.monotonic() > deadline:
                raise Failed("serve --relay at %s: %s" % (node, self.log(log)))
            time.sleep(0.05)
        return service

    def services_end(self):
        for service in self.services.values():
            service.terminate()
            try:
                service.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                service.kill()
                service.wait()
        self.services = {}

    def relayed_bytes(self, node):
        """What the service at @node has forwarded in segments, for all."""
        out = subprocess.run(
            self.mesh.command(node, [os.path.join(self.build, "fi_mesh"), "watch", "--count", "1",
                                     "--json", "--pid", str(self.services[node].pid)]),
            stdout=subprocess.PIPE, check=True).stdout
        return sum(c["bytes"] for c in json.loads(out)["circuits"])

    def pair_start(self, nodes, workload, arguments, lines=False):
        """Two ranks; the first one sends. They meet over a socket in the file system."""
        self.count += 1
        name = "pair%d" % self.count
        prefix = ["stdbuf", "-oL"] if lines else []
        return name, [self.start(
            node, prefix + [os.path.join(self.build, "bench/plugin_bench"), "--rank", str(rank),
                            "--ranks", "2", "--workload", workload, "--plugin", self.plugin,
                            "--meet", os.path.join(self.folder, name)] + arguments,
            "%s-%d" % (name, rank)) for rank, node in enumerate(nodes)]

    def pair_end(self, name, ranks):
        deadline = time.monotonic() + LIMIT_S
        for rank in ranks:
            try:
                rank.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
        if any(rank.poll() != 0 for rank in ranks):
            for rank in ranks:
                rank.kill()
                rank.wait()
            raise Failed(" | ".join(self.log("%s-%d" % (name, i))[-400:] for i in (0, 1)))
        return self.lines(name)

    def lines(self, name):
        text = self.log("%s-0" % name)
        whole = text[:text.rfind("\n") + 1]
        return [json.loads(line) for line in whole.splitlines() if line[:1] == "{"]

    def pair(self, nodes, workload, *arguments):
        return self.pair_end(*self.pair_start(nodes, workload, list(arguments)))


class Figures:
    """Samples of each figure by name, and the bounds."""

    def __init__(self, args):
        self.args = args
        self.samples = {}  # {name: {"unit", "values"}}
        self.bounds = []   # (what, name, name of the reference, LEAST or MOST, bound)

    def sample(self, name, unit, value):
        self.samples.setdefault(name, {"unit": unit, "values": []})["values"].append(value)

    def bound(self, what, name, reference, which, bound):
        row = (what, name, reference, which, bound)
        if row not in self.bounds:
            self.bounds.append(row)

    def median(self, name):
        return statistics.median(self.samples[name]["values"])

    def judged(self):
        """Each bound with the ratio of the medians, and whether it holds."""
        for what, name, reference, which, bound in self.bounds:
            ratio = self.median(name) / (self.median(reference) if reference else 1)
            yield what, ratio, which, bound, ratio >= bound if which == LEAST else ratio <= bound


# --- the figures ---

SIZES = [64 << 10, 256 << 10, MIB]


def size_text(size):
    return "%d MiB" % (size // MIB) if size >= MIB else "%d KiB" % (size >> 10)


def stream(bench, figures, nodes, what):
    for line in bench.pair(nodes, "stream", "--sizes", ",".join(map(str, SIZES)),
                           "--seconds", str(figures.args.seconds)):
        figures.sample("%s, %s" % (what, size_text(line["bytes"])), "Mbit/s",
                       1000 * line["gbit_s"])


def shaped(bench, figures):
    bench.nodes("ab bc cd", "%dmbit" % figures.args.rate)
    for node in "bc":
        bench.serve(node)
    for _ in range(figures.args.rounds):
        for end, what in ("b", "cable"), ("c", "one relay"), ("d", "two relays"):
            stream(bench, figures, "a" + end, what)
    for size in map(size_text, SIZES):
        figures.bound("one relay to a cable, " + size, "one relay, " + size, "cable, " + size,
                      LEAST, 0.97)
        figures.bound("two relays to a cable, " + size, "two relays, " + size, "cable, " + size,
                      LEAST, 0.95)


def ring(bench, figures):
    bench.nodes("ab bc cd da", "%dmbit" % figures.args.rate)
    for node in "bd":
        bench.serve(node)
    for _ in range(figures.args.rounds):
        stream(bench, figures, "ab", "cable of the ring")
        stream(bench, figures, "ac", "diagonal")
    figures.bound("diagonal of a ring of four to a cable, 1 MiB", "diagonal, 1 MiB",
                  "cable of the ring, 1 MiB", LEAST, 1.9)


def overlap(bench, seconds, own, other):
    """Rates of two pairs' streams in Mbit/s, while both stream; the own one begins first."""
    own_pair = bench.pair_start(own, "stream", ["--sizes", ",".join(["256K"] * 16), "--seconds",
                                                str(seconds)], lines=True)
    seen, deadline = {0: [], 1: []}, time.monotonic() + LIMIT_S

    def look(pair, name, running):
        while True:
            for line in bench.lines(name)[len(seen[pair]):]:
                seen[pair].append((time.monotonic(), 1000 * line["gbit_s"]))
            if running() or time.monotonic() > deadline:
                return
            time.sleep(0.01)

    look(0, own_pair[0], lambda: seen[0])
    other_pair = bench.pair_start(other, "stream", ["--sizes", "256K,256K,256K,256K", "--seconds",
                                                    str(seconds)], lines=True)
    while any(rank.poll() is None for rank in own_pair[1] + other_pair[1]):
        look(0, own_pair[0], lambda: True)
        look(1, other_pair[0], lambda: True)
        if time.monotonic() > deadline:
            raise Failed("two streams do not end: %s" % bench.log(other_pair[0] + "-0"))
        time.sleep(0.01)
    bench.pair_end(*own_pair)
    bench.pair_end(*other_pair)
    look(1, other_pair[0], lambda: True)
    first, last = seen[1][0][0], seen[1][-1][0]
    both = [rate for at, rate in seen[0] if first < at <= last]
    if not both:
        raise Failed("the two streams were not at the same time")
    return statistics.mean(both), statistics.mean(rate for _, rate in seen[1][1:])


def fair(bench, figures):
    """The rank at b relays: it is asked first, and its own pair began before."""
    bench.nodes("ab bc", "%dmbit" % figures.args.rate)
    for _ in range(figures.args.rounds):
        stream(bench, figures, "ab", "cable of b")
        for own, other, what in ("ba", "ca", "b sends"), ("ab", "ac", "b receives"):
            mine, relayed = overlap(bench, figures.args.seconds, own, other)
            figures.sample("own traffic while %s and relays" % what, "Mbit/s", mine)
            figures.sample("relayed traffic while %s its own" % what, "Mbit/s", relayed)
            figures.bound("own traffic while %s and relays, to the cable" % what,
                          "own traffic while %s and relays" % what, "cable of b, 1 MiB",
                          LEAST, 0.45)
            figures.bound("relayed traffic while %s its own, to the cable" % what,
                          "relayed traffic while %s its own" % what, "cable of b, 1 MiB",
                          LEAST, 0.3)


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu(bench, figures):
    bench.nodes("ab bc")
    service = bench.serve("b")
    arguments = ["--sizes", "1M", "--pause", PAUSE_US["cpu"], "--seconds",
                 str(4 * figures.args.seconds)]
    for _ in range(figures.args.rounds):
        line = bench.pair("ab", "stream", *arguments)[0]
        figures.sample("CPU, cable", "s/GiB", line["cpu_s_per_gib"])
        figures.sample("throughput, cable, no limit", "Mbit/s", 1000 * line["gbit_s"])
        before, had = cpu_seconds(service.pid), bench.relayed_bytes("b")
        line = bench.pair("ac", "stream", *arguments)[0]
        gib = (bench.relayed_bytes("b") - had) / (1 << 30)
        relay = (cpu_seconds(service.pid) - before) / gib
        figures.sample("CPU, the relay's part", "s/GiB", relay)
        figures.sample("CPU, one relay", "s/GiB", line["cpu_s_per_gib"] + relay)
        figures.sample("throughput, one relay, no limit", "Mbit/s", 1000 * line["gbit_s"])
    figures.bound("CPU through one relay to a cable", "CPU, one relay", "CPU, cable", MOST, 2.2)


def latency(bench, figures):
    bench.nodes("ab bc cd")
    for node in "bc":
        bench.serve(node)
    for _ in range(figures.args.rounds):
        for end, what in ("b", "cable"), ("c", "one relay"), ("d", "two relays"):
            line = bench.pair("a" + end, "pingpong", "--sizes", "8", "--pause",
                              PAUSE_US["latency"], "--seconds", str(figures.args.seconds))[0]
            figures.sample("half a round trip of 8 B, " + what, "us", line["half_rtt_us"])
    for relays, what in (1, "one relay"), (2, "two relays"):
        figures.bound("half a round trip of 8 B through %s to a cable" % what,
                      "half a round trip of 8 B, " + what, "half a round trip of 8 B, cable",
                      MOST, 1 + 1.5 * relays)


FIGURES = {"shaped": shaped, "ring": ring, "fair": fair, "cpu": cpu, "latency": latency}


def report(figures):
    print("%-52s %9s %9s %9s" % ("figure", "median", "least", "most"))
    for name, figure in figures.samples.items():
        values = figure["values"]
        print("%-52s %9.2f %9.2f %9.2f %s" % (name, statistics.median(values), min(values),
                                              max(values), figure["unit"]))
    failed = 0
    for what, ratio, which, bound, holds in figures.judged():
        failed += not holds
        print("%-70s %6.3f, %s %.2f: %s" % (what, ratio, which, bound,
                                            "ok" if holds else "MISSED"))
    return failed


def why_not(build):
    if os.geteuid():
        return "network namespaces need root"
    for name in ("fi_mesh", "bench/plugin_bench"):
        if not os.path.exists(os.path.join(TOP, build, name)):
            return "%s/%s is not built" % (build, name)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", action="append", choices=sorted(FIGURES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each stream")
    parser.add_argument("--rate", type=int, default=400, help="Mbit/s of a shaped link")
    parser.add_argument("--build", default=os.environ.get("MESH_BUILD", "build"))
    args = parser.parse_args()
    reason = why_not(args.build)
    if reason:
        print("SKIP: %s" % reason)
        return SKIP
    figures, failed = Figures(args), 0
    for name in args.only or FIGURES:
        bench = Bench(args.build)
        try:
            FIGURES[name](bench, figures)
        except Failed as why:
            print("FAILED %s: %s" % (name, why))
            failed += 1
        finally:
            bench.close()
    failed += report(figures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
