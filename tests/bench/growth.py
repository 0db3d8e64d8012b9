#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""growth.py - what a start costs one process as the mesh grows: all ranks connect to all others at
once, and one of them is looked at.

Usage: growth.py [full N | ring N]...      the figures of these meshes, as a table
       growth.py check                     full 4 and 12; fails if one grows faster than the pairs
Options: --build DIR

full N is N nodes with a cable between each two, ring N a ring. Counted are, of rank 0 (strace): the
netlink sockets that it opens, and its calls about files and sockets; and the bytes that all NICs of
the mesh send. None of them is a time. One message of a few bytes goes over each connection. Exit
status 77: cannot be counted here, with the reason.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
TOP = os.path.dirname(os.path.dirname(HERE))

from nodes import Mesh, ip  # noqa: E402

SKIP = 77
LIMIT_S = 300
MANAGEMENT = "172.31.0."
CHECKED = 4, 12
# Of what one more peer costs in the smaller mesh: what grows with the square of the peers has 3.7.
# libfabric looks at all interfaces for each of ours, which is no more than a part of it.
GROWTH = 2.5


def cables(shape, num):
    """The pairs of nodes that have a cable."""
    if shape == "ring":
        return [(i, (i + 1) % num) for i in range(num)]
    return [(i, j) for i in range(num) for j in range(i + 1, num)]


def build(mesh, shape, num):
    """Nodes n0, n1 ... with their cables, and a management network for the ranks to meet."""
    names = ["n%d" % i for i in range(num)]
    mesh.add("switch", *names)
    switch = mesh.prefix + "switch"
    ip("-n", switch, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
    ip("-n", switch, "link", "set", "br0", "up")
    for i, name in enumerate(names):
        node = mesh.prefix + name
        ip("-n", node, "link", "add", "mgmt0", "type", "veth", "peer", "name", "p%d" % i,
           "netns", switch)
        ip("-n", switch, "link", "set", "p%d" % i, "master", "br0", "up")
        ip("-n", node, "address", "add", MANAGEMENT + "%d/24" % (i + 1), "dev", "mgmt0")
        ip("-n", node, "link", "set", "mgmt0", "up")
    for subnet, (i, j) in enumerate(cables(shape, num), 1):
        mesh.link(names[i], names[j], subnet)
    return names


def bytes_sent(mesh, names):
    """By all NICs of the mesh."""
    script = "for n in /sys/class/net/n*; do cat $n/statistics/tx_bytes; done"
    return sum(int(count) for name in names for count in subprocess.run(
        ["ip", "netns", "exec", mesh.prefix + name, "sh", "-c", script],
        stdout=subprocess.PIPE, check=True).stdout.split())


def traced(path):
    return ["strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=%network,%file", "-o", path]


def ranks_run(mesh, names, program, path):
    """All ranks at once; returns the seconds that it took."""
    command = [program, "--all-at-once", "--check-max", "8", "--sizes", "8", "--iters", "1",
               "--repeat", "1", "--channels", "1", "--timeout", str(LIMIT_S)]
    begin = time.monotonic()
    ranks = []
    for i, name in enumerate(names):
        env = dict(os.environ, RANK=str(i), WORLD_SIZE=str(len(names)), TEST_NAP_US="200",
                   MASTER_ADDR=MANAGEMENT + "1", MASTER_PORT="29500", NCCL_MESH_NICS="^mgmt0")
        ranks.append(subprocess.Popen(
            mesh.command(name, ([] if i else traced(path)) + command), env=env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    for i, rank in enumerate(ranks):
        said = rank.communicate(timeout=LIMIT_S)[0]
        if rank.returncode:
            raise RuntimeError("rank %d ends with %d: %s" % (
                i, rank.returncode, said.decode(errors="replace")[-2000:]))
    return time.monotonic() - begin


def count(args, shape, num):
    """What each peer of rank 0 and each pair cost in this mesh, by name; prints it."""
    mesh = Mesh()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls")
        try:
            names = build(mesh, shape, num)
            before = bytes_sent(mesh, names)
            seconds = ranks_run(mesh, names, os.path.join(args.build, "fabric_pingpong"), path)
            sent = bytes_sent(mesh, names) - before
        finally:
            mesh.remove()
        with open(path, errors="replace") as lines:
            calls = [line for line in lines if "resumed>" not in line]
    sockets = sum("socket(AF_NETLINK" in line for line in calls)
    print("%-4s %2d: %5d netlink sockets, %6d calls of rank 0; %9d bytes; %.1f s" % (
        shape, num, sockets, len(calls), sent, seconds))
    sys.stdout.flush()
    return {"netlink sockets for each peer": sockets / (num - 1),
            "calls for each peer": len(calls) / (num - 1),
            "bytes for each pair": sent / (num * (num - 1))}


def check(args):
    small, large = (count(args, "full", num) for num in CHECKED)
    status = 0
    for name, cost in small.items():
        print("%s: %.0f, then %.0f (at most %.0f)" % (
            name, cost, large[name], GROWTH * cost))
        if large[name] > GROWTH * cost:
            print("FAIL: %s grow with the mesh" % name)
            status = 1
    return status


def why_not():
    if os.geteuid():
        return "needs root to make network namespaces"
    for tool in "ip", "strace", "unshare":
        if not shutil.which(tool):
            return "'%s' is missing (scripts/install-deps.sh)" % tool
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("meshes", nargs="*", default=["check"], metavar="full N | ring N | check")
    parser.add_argument("--build", default=os.environ.get("MESH_BUILD", "build"))
    args = parser.parse_args()
    args.build = os.path.join(TOP, args.build)
    reason = why_not()
    if reason:
        print("SKIP: %s" % reason)
        return SKIP
    if args.meshes == ["check"]:
        return check(args)
    for shape, num in zip(args.meshes[::2], args.meshes[1::2]):
        count(args, shape, int(num))
    return 0


if __name__ == "__main__":
    sys.exit(main())
