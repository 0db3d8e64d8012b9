#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cost.py - instructions that one message costs inside the plugin's own code, both ends together;
and those of a relay for each MiB.

Usage: cost.py [count]           the figures, as a table
       cost.py check             fails if a figure is a tenth above tests/bench/cost.json (the
                                 relay's: by half)
       cost.py record            writes today's figures to tests/bench/cost.json
       cost.py functions         where the instructions go, by function and by line
       cost.py calls             the system calls of a message (strace), by name
       cost.py connect           the files of src/ of which the first connect() runs code, in the
                                 thread that calls it
Options: --build DIR  --plugin FILE  --json FILE  --top N  --bound FILE

plugin_cost moves messages under callgrind, both ends on one thread in turn, over the loopback
interface of a network namespace of its own. Counted is what the plugin's file executes from isend
and irecv to the last test; libfabric, libc and the driver are other files. The relay is `fi_mesh
serve --relay` between two nodes that stream messages of 1 MiB; counted is what its process executes
for the second part of them, all its threads together. That one needs root. Exit status 77: cannot
be counted here, with the reason.
"""
import argparse
import collections
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
TOP = os.path.dirname(os.path.dirname(HERE))

import relay  # noqa: E402

RECORD = os.path.join(TOP, "tests/bench/cost.json")
GROWTH = 1.10
# A relay polls more often in vain if the data comes slowly: 5960 to 9303 were counted.
RELAY_GROWTH = 1.5
SKIP = 77
LIMIT_S = 300
TRIES = 6
# The loopback's own MTU of 64 KiB makes TCP wait for windows of that size, for milliseconds.
LOOPBACK_MTU = 9000
# plugin_cost's WARM_UP: callgrind counts calls, unlike instructions, in the warm-up as well.
WARM_UP = 64

# name, bytes (None: polls with nothing to do), messages or polls, in flight, open comms; figures
# with the same rest share a run, whose receives have the size of its largest message
FIGURES = [
    ("8 B", 8, 200, 1, 1),
    ("8 B, 8 in flight", 8, 400, 8, 1),
    ("4 KiB", 4096, 200, 1, 1),
    ("16 KiB", 16384, 100, 1, 1),
    ("64 KiB", 65536, 100, 1, 1),
    ("64 KiB, receive exact", 65536, 100, 1, 1, "exact"),
    ("512 KiB", 524288, 48, 1, 1),
    ("64 KiB, 8 in flight", 65536, 96, 8, 1),
    ("512 KiB, 8 in flight", 524288, 48, 8, 1),
    ("idle test", None, 2000, 1, 1),
    ("idle test, 64 comms", None, 2000, 1, 64),
]
# Not in FIGURES: it has a program of its own.
RELAY = "relay, 1 MiB"
# Those that carry data, and those that wait for it.
TRACED = "read,write,readv,writev,recvfrom,recvmsg,sendto,sendmsg,epoll_wait,poll"
# What a run with the first number of messages takes is subtracted from one with the second.
CALLS_MESSAGES = (200, 600)
# A stream of so many seconds is subtracted from a longer one.
RELAY_SECONDS = (1, 5)
# Left out is what depends on how many completions one poll finds.
BOUNDED = [RELAY, "8 B", "8 B, 8 in flight", "512 KiB", "idle test", "idle test, 64 comms"]
# `calls` looks at these.
CALLED = ["8 B", "4 KiB", "16 KiB", "64 KiB", "512 KiB", "64 KiB, 8 in flight",
          "512 KiB, 8 in flight"]
# A receive that is larger than the message, as NCCL posts them, costs so much at most.
LARGER = ("64 KiB", "64 KiB, receive exact", 1.05)


class Profile:
    """Self costs of one dump: by object, by (object, function), by (object, file, line)."""

    def __init__(self, path):
        self.objects = collections.Counter()
        self.functions = collections.Counter()
        self.lines = collections.Counter()
        self.calls = collections.Counter()  # by (caller's object, function called)
        self._read(path)

    def _read(self, path):
        ob = fl = fn = called = None
        skip = False
        with open(path) as lines:
            for line in lines:
                key, _, value = line.rstrip("\n").partition("=")
                if key == "ob":
                    ob = value
                elif key in ("fl", "fi", "fe"):
                    fl = value
                elif key == "fn":
                    fn = value
                elif key == "cfn":
                    called = value
                elif key == "calls":
                    self.calls[ob, called] += int(value.split()[0])
                    skip = True  # the next line is what the call cost inside
                elif line[:1].isdigit():
                    if not skip:
                        self._add(ob, fl, fn, line.split())
                    skip = False

    def subtract(self, other):
        for mine, theirs in zip(vars(self).values(), vars(other).values()):
            mine.subtract(theirs)

    def _add(self, ob, fl, fn, numbers):
        cost = int(numbers[1]) if len(numbers) > 1 else 0
        self.objects[ob] += cost
        self.functions[ob, fn] += cost
        self.lines[ob, fl, int(numbers[0])] += cost


def is_plugin(ob, plugin):
    return ob == plugin or "/plugin_cost-" in ob or os.path.basename(ob) == "fi_mesh"


def share_of(ob, plugin):
    if is_plugin(ob, plugin):
        return "plugin"
    name = os.path.basename(ob)
    if name.startswith("libfabric"):
        return "libfabric"
    if name.startswith(("libc.", "libc-", "ld-linux", "libpthread")):
        return "libc"
    return "driver"


def why_not(args):
    if not shutil.which("valgrind"):
        return "valgrind is not installed (scripts/install-deps.sh)"
    if not os.path.exists(args.program):
        return "%s is not built" % args.program
    if subprocess.run(namespace(["true"]), stderr=subprocess.DEVNULL).returncode:
        return "network namespaces are not permitted"
    return None


def namespace(command):
    """The command in a network namespace of its own whose loopback interface is up."""
    script = 'ip link set lo mtu %d up && exec "$@"' % LOOPBACK_MTU
    enter = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    return enter + ["sh", "-c", script, "sh"] + command


def callgrind(out, *more):
    """The beginning of a command whose costs by line go to the file @out."""
    return ["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out, "--dump-line=yes",
            "--fair-sched=try", "--compress-strings=no", "--compress-pos=no"] + list(more)


def source_name(fl):
    return os.path.relpath(fl, TOP) if fl[:1] == "/" else fl


def run(args, runs, folder):
    """One callgrind run of figures that share window and comms: a Profile for each, in order."""
    window, comms = runs[0][3], runs[0][4]
    sizes = [f for f in runs if f[1] is not None]
    idle = [f for f in runs if f[1] is None]
    out = os.path.join(folder, "out")
    command = callgrind(out, "--collect-atstart=no", "--toggle-collect=cost_measure",
                        "--dump-after=cost_measure")
    command += [args.program, "--plugin", args.plugin, "--inflight", str(window),
                "--comms", str(comms), "--idle", str(idle[0][2] if idle else 0),
                "--sizes", ",".join(str(f[1]) for f in sizes),
                "--messages", ",".join(str(f[2]) for f in sizes)]
    done = subprocess.run(namespace(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=LIMIT_S, env=dict(os.environ, NCCL_MESH_NICS="=lo"))
    if done.returncode:
        sys.exit("cost.py: %s\n%s" % (" ".join(command), done.stdout.decode(errors="replace")))
    return [Profile("%s.%d" % (out, i + 1)) for i in range(len(sizes) + len(idle))]


def relay_stream(args, seconds):
    """Profile of a relay's whole life, and the MiB that it has forwarded."""
    bench = relay.Bench(args.build, args.plugin)
    out = os.path.join(bench.folder, "callgrind")
    try:
        bench.nodes("ab bc")
        bench.serve("b", under=callgrind(out))
        bench.pair("ac", "stream", "--sizes", "1M", "--pause", "20", "--seconds", str(seconds))
        moved = bench.relayed_bytes("b") / relay.MIB
        bench.services_end()
        return Profile(out), moved
    finally:
        bench.close()


def relay_measure(args):
    """As an entry of measure(): the figure counts MiB in place of messages."""
    (short, less), (profile, more) = [relay_stream(args, s) for s in RELAY_SECONDS]
    profile.subtract(short)
    return (RELAY, relay.MIB, more - less, 8, 1), profile


def measure(args, names):
    """{figure name: (figure, Profile)}; figures with one window and number of comms in one run."""
    groups = collections.OrderedDict()
    for figure in FIGURES:
        if figure[0] in names:
            groups.setdefault(figure[3:], []).append(figure)
    found = {}
    for runs in groups.values():
        runs.sort(key=lambda f: f[1] is None)
        with tempfile.TemporaryDirectory() as folder:
            for figure, profile in zip(runs, run(args, runs, folder)):
                found[figure[0]] = (figure, profile)
    if RELAY in names:
        found[RELAY] = relay_measure(args)
    return found


def traced(args, figure, messages):
    """System calls of a run with so many messages: by name, and by (name, "in vain")."""
    calls = collections.Counter()
    with tempfile.NamedTemporaryFile("r") as out:
        command = ["strace", "-f", "-qq", "-e", "trace=" + TRACED, "-o", out.name,
                   args.program, "--plugin", args.plugin, "--inflight", str(figure[3]),
                   "--comms", str(figure[4]), "--sizes", str(figure[1]),
                   "--messages", str(messages)]
        subprocess.run(namespace(command), check=True, timeout=LIMIT_S,
                       env=dict(os.environ, NCCL_MESH_NICS="=lo"))
        for line in out:
            found = re.match(r"\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed>)", line)
            if found and "<unfinished" not in line:
                calls[found.group(1)] += 1
                calls[found.group(1), "in vain"] += " EAGAIN " in line
    return calls


def calls_of(figure):
    return figure[2] + (0 if figure[1] is None or figure[0] == RELAY else WARM_UP)


def shares(args, figure, profile):
    """Instructions of one message (or one poll) by share, and calls of test."""
    each = collections.Counter()
    for ob, cost in profile.objects.items():
        each[share_of(ob, args.plugin)] += cost / figure[2]
    each["test calls"] = sum(n for (_, called), n in profile.calls.items()
                             if called == "adapter_test") / calls_of(figure)
    return {name: round(each[name], 1) for name in ("plugin", "libfabric", "libc", "test calls")}


def compiler_of(plugin):
    """The compiler that built the plugin, without its patch level: another counts otherwise."""
    dump = subprocess.run(["readelf", "-p", ".comment", plugin], stdout=subprocess.PIPE).stdout
    found = re.search(r"(GCC|clang)[^\n]*?(\d+)\.\d+", dump.decode(errors="replace"))
    return "%s %s" % (found.group(1).lower(), found.group(2)) if found else "unknown"


def here(args):
    return {"compiler": compiler_of(args.plugin), "machine": platform.machine()}


def table(args, found):
    head = ("figure", "plugin", "libfabric", "libc", "test calls")
    print("%-24s %9s %9s %9s %10s" % head)
    for name, (figure, profile) in found.items():
        each = shares(args, figure, profile)
        print("%-24s %9.0f %9.0f %9.0f %10.1f" %
              (name, each["plugin"], each["libfabric"], each["libc"], each["test calls"]))


def command_count(args):
    names = [f[0] for f in FIGURES]
    found = measure(args, names + ([] if relay.why_not(args.build) else [RELAY]))
    table(args, found)
    if args.json:
        with open(args.json, "w") as out:
            json.dump({name: shares(args, *each) for name, each in found.items()}, out, indent=2)
    return 0


def least(args, names, enough=None):
    """{name: our instructions}, the least of TRIES counts: a slow kernel only adds empty polls."""
    best = {}
    for _ in range(TRIES):
        for name, each in measure(args, names).items():
            count = shares(args, *each)["plugin"]
            best[name] = min(count, best.get(name, count))
        if enough:
            names = [name for name in names if best[name] > enough[name]]
            if not names:
                break
    return best


def command_record(args):
    record = dict(here(args), instructions={
        name: round(count) for name, count in least(args, BOUNDED).items()})
    with open(args.bound, "w") as out:
        json.dump(record, out, indent=2)
        out.write("\n")
    print(json.dumps(record, indent=2))
    return 0


def command_check(args):
    with open(args.bound) as f:
        record = json.load(f)
    for what, value in here(args).items():
        if record[what] != value:
            print("SKIP: counted for %s, this is %s" % (record[what], value))
            return SKIP
    limits = {name: (RELAY_GROWTH if name == RELAY else GROWTH) * count
              for name, count in record["instructions"].items()}
    reason = RELAY in limits and relay.why_not(args.build)
    if reason:
        print("%-24s not counted: %s" % (RELAY, reason))
        del limits[RELAY]
    failed = 0
    for name, now in least(args, list(limits), limits).items():
        grown = now > limits[name]
        failed += grown
        print("%-24s %6.0f instructions, recorded %6d: %s" %
              (name, now, record["instructions"][name],
               "MORE THAN %s ABOVE" % ("HALF" if name == RELAY else "A TENTH")
               if grown else "ok"))
    larger, exact, ratio = LARGER
    now = least(args, [f[0] for f in FIGURES if f[3:5] == (1, 1) and f[1]])
    grown = now[larger] > ratio * now[exact]
    failed += grown
    print("%-24s %6.0f instructions, %6.0f if the receive is exact: %s" %
          (larger, now[larger], now[exact], "MORE THAN A TWENTIETH ABOVE" if grown else "ok"))
    if failed:
        print("FAIL: `tests/bench/cost.py functions` shows where they go; if it is worth them, "
              "`tests/bench/cost.py record`")
    return 1 if failed else 0


def command_functions(args):
    for name, (figure, profile) in measure(args, args.figures or ["8 B", "512 KiB"]).items():
        each = shares(args, figure, profile)
        print("== %s: %.0f instructions of ours for each, %.1f calls of test" %
              (name, each["plugin"], each["test calls"]))
        functions, lines, calls = (collections.Counter() for _ in range(3))
        for (ob, called), n in profile.calls.items():
            if is_plugin(ob, args.plugin):
                calls[called] += n / calls_of(figure)
        for (ob, fn), cost in profile.functions.items():
            if is_plugin(ob, args.plugin):
                functions[fn] += cost / figure[2]
        for (ob, fl, line), cost in profile.lines.items():
            if is_plugin(ob, args.plugin):
                lines["%s:%d" % (source_name(fl), line)] += cost / figure[2]
        for title, counter in (("function", functions), ("line", lines)):
            print("-- by %s" % title)
            for what, cost in counter.most_common(args.top):
                print("%8.1f  %4.1f %%  %s" % (cost, 100 * cost / each["plugin"], what))
        print("-- calls that our code makes")
        for what, n in calls.most_common(args.top):
            print("%8.2f  %s" % (n, what))
    return 0


def command_calls(args):
    if not shutil.which("strace"):
        print("SKIP: strace is not installed")
        return SKIP
    for figure in FIGURES:
        if figure[0] not in (args.figures or CALLED):
            continue
        calls = traced(args, figure, CALLS_MESSAGES[1])
        calls.subtract(traced(args, figure, CALLS_MESSAGES[0]))
        more = CALLS_MESSAGES[1] - CALLS_MESSAGES[0]
        print("== %s: system calls for each message, both ends" % figure[0])
        for name, count in calls.most_common():
            if isinstance(name, str) and count / more >= 0.05:
                print("%8.2f  %s, %.2f of them in vain" %
                      (count / more, name, calls[name, "in vain"] / more))
    return 0


def command_connect(args):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        command = callgrind(out, "--separate-threads=yes", "--collect-atstart=no",
                            "--toggle-collect=plugin_connect*")
        command += [args.program, "--plugin", args.plugin, "--messages", "1,1"]
        subprocess.run(namespace(command), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=LIMIT_S,
                       env=dict(os.environ, NCCL_MESH_NICS="=lo"))
        profile = Profile(out + "-01")
    costs = collections.Counter()
    for (_, fl, _), cost in profile.lines.items():
        name = source_name(fl)
        costs[name] += cost if name.startswith("src/") else 0
    costs = +costs
    for name, cost in sorted(costs.items()):
        print("%8d  %s" % (cost, name))
    print("files: %d" % len(costs))
    return 0


def main():
    commands = {"count": command_count, "check": command_check, "record": command_record,
                "functions": command_functions, "calls": command_calls,
                "connect": command_connect}
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("command", nargs="?", default="count", choices=sorted(commands))
    parser.add_argument("--build", default=os.environ.get("MESH_BUILD", "build"))
    parser.add_argument("--plugin")
    parser.add_argument("--json", help="write the figures there, too")
    parser.add_argument("--bound", default=RECORD, help="instead of tests/bench/cost.json")
    parser.add_argument("--top", type=int, default=40)
    parser.add_argument("--figures", action="append",
                        help="for functions and calls; may be repeated")
    args = parser.parse_args()
    build = os.path.join(TOP, args.build)
    args.program = os.path.join(build, "bench/plugin_cost")
    args.plugin = os.path.abspath(args.plugin or os.path.join(build, "libnccl-net-mesh.so"))
    reason = why_not(args)
    if reason:
        print("SKIP: %s" % reason)
        return SKIP
    return commands[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
