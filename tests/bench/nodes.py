# SPDX-License-Identifier: Apache-2.0
"""nodes.py - nodes of a benchmark: network namespaces, the links between them, programs in them."""
import os
import re
import resource
import signal
import subprocess
import time

LINK_LIMIT_S = 10
# As tests/functional/lib.sh: what tbf lets through at once, and how long it may hold packets.
BURST, LATENCY = "256kb", "30ms"


def ip(*arguments):
    subprocess.run(["ip"] + list(arguments), check=True, stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE)


def pid_lives(pid):
    return os.path.exists("/proc/%s" % pid)


class Mesh:
    """Namespaces with names that carry our pid, so that leftovers of the dead can be removed."""

    def __init__(self):
        self.prefix = "mesh%d-" % os.getpid()
        self.nodes = []
        listed = subprocess.run(["ip", "netns", "list"], stdout=subprocess.PIPE)
        for name in listed.stdout.decode().split():
            found = re.match(r"mesh(\d+)-", name)
            if found and not pid_lives(found.group(1)):
                subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)

    def add(self, *names):
        for name in names:
            ip("netns", "add", self.prefix + name)
            self.nodes.append(name)
            ip("-n", self.prefix + name, "link", "set", "lo", "up")
            self._congestion_control(name)
            self._addresses_at_once(name)

    def _congestion_control(self, node):
        """With bbr the figures would show its own pacing: half the rate and twice the noise."""
        path = "/proc/sys/net/ipv4/tcp_congestion_control"
        script = "grep -qw cubic %s || echo reno >%s" % (path, path)
        subprocess.run(["ip", "netns", "exec", self.prefix + node, "sh", "-c", script], check=True)

    def _addresses_at_once(self, node):
        """IPv6 addresses wait for no answer of another node that has the same one."""
        script = "for f in /proc/sys/net/ipv6/conf/*/accept_dad; do [ ! -e $f ] || echo 0 >$f; done"
        subprocess.run(["ip", "netns", "exec", self.prefix + node, "sh", "-c", script], check=True)

    def link(self, one, other, subnet, rate=None):
        """A veth pair with addresses 10.77.subnet.1 and .2, sending at most at `rate` each way."""
        ends = [(one, "%s%s%d" % (one, other, subnet), "10.77.%d.1" % subnet),
                (other, "%s%s%d" % (other, one, subnet), "10.77.%d.2" % subnet)]
        ip("-n", self.prefix + one, "link", "add", ends[0][1], "type", "veth", "peer", "name",
           ends[1][1], "netns", self.prefix + other)
        for node, nic, address in ends:
            ip("-n", self.prefix + node, "address", "add", address + "/24", "dev", nic)
            ip("-n", self.prefix + node, "link", "set", nic, "up")
            if rate:
                subprocess.run(["ip", "netns", "exec", self.prefix + node, "tc", "qdisc", "add",
                                "dev", nic, "root", "tbf", "rate", rate, "burst", BURST,
                                "latency", LATENCY], check=True)
        for node, nic, _address in ends:
            self._await_link(node, nic)

    def _await_link(self, node, nic):
        # libfabric leaves out an interface that is not operational yet; that can take a second.
        deadline = time.monotonic() + LINK_LIMIT_S
        show = ["ip", "-n", self.prefix + node, "link", "show", "dev", nic]
        # ip reads all namespaces and complains of one that disappears.
        while b"state UP" not in subprocess.run(show, stdout=subprocess.PIPE,
                                                stderr=subprocess.DEVNULL).stdout:
            if time.monotonic() > deadline:
                raise RuntimeError("%s of node %s does not come up" % (nic, node))
            time.sleep(0.02)

    def command(self, node, command, cpu=None):
        """The command as on a host of its own: host name and network."""
        pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
        script = 'hostname "$0" && NCCL_MESH_NODE_NAME=$0 exec "$@"'
        return (["ip", "netns", "exec", self.prefix + node, "unshare", "--uts", "sh", "-c",
                 script, node] + pin + command)

    def remove(self, *names):
        for name in names or list(self.nodes):
            pids = subprocess.run(["ip", "netns", "pids", self.prefix + name],
                                  stdout=subprocess.PIPE).stdout.decode().split()
            for pid in pids:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            subprocess.run(["ip", "netns", "del", self.prefix + name])
            self.nodes.remove(name)


class Machine:
    """How busy the machine is, and how much of that other processes cause."""

    def __init__(self):
        self.hz = os.sysconf("SC_CLK_TCK")

    def look(self):
        """(seconds that all CPUs were busy, seconds that they had, seconds of our children)"""
        with open("/proc/stat") as stat:
            numbers = [int(n) for n in stat.readline().split()[1:9]]
        idle = numbers[3] + numbers[4]
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ((sum(numbers) - idle) / self.hz, sum(numbers) / self.hz,
                own.ru_utime + own.ru_stime)

    @staticmethod
    def others(before, after):
        """The share of the machine that others used in between, 0 to 1."""
        busy, had, own = (b - a for a, b in zip(before, after))
        return round(min(1.0, max(0.0, (busy - own) / had)), 3) if had > 0 else 0.0
