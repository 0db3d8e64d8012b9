#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""read_log.py - says which network NCCL used, from its own log; fails unless it was ours.

Usage: read_log.py [--network NAME] [--inside] LOG...

NCCL falls back to its own transports silently, so that a test can pass over the wrong network. Each
LOG is one process's output with NCCL_DEBUG=INFO. All its communicators must have used NAME (default
Mesh), and no two of its ranks may have talked through shared memory or between GPUs; --inside
allows that, for nodes with several GPUs. Exit status 0, 1, or 2 for a usage error.
"""
import argparse
import collections
import re
import sys

# init.cc, net.cc: once for each communicator, since NCCL 2.4.
USING = re.compile(r"NCCL INFO Using network (.+?)\s*$")
# transport/*.cc: once for each connection.
VIA = re.compile(r"NCCL INFO Channel \d+.* via (NET/[^/\s]+|P2P|SHM|[A-Za-z]+)")
# What NCCL says about a plugin that it did not take; the reason stands behind it.
REFUSED = re.compile(r"NCCL INFO ((?:NET|PLUGIN)/Plugin.*(?:could not find|failed|no plugin found)"
                     r".*|.*plugin.*(?:is unsupported|load .*returned).*"
                     r"|External network plugin.*unsupported.*)$", re.IGNORECASE)
ABOUT_OTHERS = re.compile(r"CollNet|\bGIN\b|TUNER|PROFILER|ENV/Plugin|\bsymbol\b")


class Log:
    """What one log says."""

    def __init__(self, name):
        self.name = name
        self.networks = collections.Counter()
        self.connections = collections.Counter()
        self.refusals = []

    def read(self, lines):
        for line in lines:
            if match := USING.search(line):
                self.networks[match.group(1)] += 1
            if match := VIA.search(line):
                self.connections[match.group(1)] += 1
            match = REFUSED.search(line)
            if match and not ABOUT_OTHERS.search(line):
                self.refusals.append(match.group(1))
        return self

    def complaints(self, network, inside_allowed):
        """Why this is not a run over the network; empty if it is."""
        wanted = network.lower()
        if not self.networks:
            return ["no communicator in this log; was NCCL_DEBUG=INFO set?"]
        found = ["a communicator used %s" % other for other in self.networks
                 if other.lower() != wanted]
        for way, count in self.connections.items():
            if way.startswith("NET/"):
                if way[len("NET/"):].lower() != wanted:
                    found.append("%d connections through %s" % (count, way))
            elif not inside_allowed:
                found.append("%d connections through %s: did every rank get its own "
                             "NCCL_HOSTID?" % (count, way))
        if found:
            found += self.refusals
        return found

    def summary(self):
        return "%s: %s; %s" % (
            self.name,
            ", ".join("%s in %d communicators" % item for item in self.networks.items()),
            ", ".join("%d connections through %s" % (count, way)
                      for way, count in self.connections.items()) or "no connections")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="Mesh")
    parser.add_argument("--inside", action="store_true")
    parser.add_argument("logs", nargs="+", metavar="LOG")
    options = parser.parse_args(arguments)
    wrong = False
    for name in options.logs:
        with open(name, errors="replace") as file:
            log = Log(name).read(file)
        complaints = log.complaints(options.network, options.inside)
        for complaint in complaints:
            print("%s: not %s: %s" % (name, options.network, complaint), file=sys.stderr)
        if not complaints:
            print(log.summary())
        wrong = wrong or bool(complaints)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
