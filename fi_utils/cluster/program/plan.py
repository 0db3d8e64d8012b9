# SPDX-License-Identifier: Apache-2.0
"""plan.py - addresses for the cables, and what each node's files have to be."""
import base64
import difflib
import ipaddress
import json
import os
import re
import subprocess
import tempfile

import answer
from remote import Failure, clean, script

MTU_ETHERNET, MTU_INFINIBAND = 9000, 2044
SYSCTL = "/etc/sysctl.d/60-mesh.conf"
# The files of `fi_mesh plan --config` for one port (fi_utils/plan/formats.c).
PORT_FILE = re.compile(r".*/(?:60-)?mesh-([^/]*)\.(?:yaml|nmconnection|network)")
SYSCTL_TEXT = """# Several NICs of this node share a wire: each answers for its own addresses only.
net.ipv4.conf.all.arp_ignore=1
net.ipv4.conf.all.arp_announce=2
"""


class Change:
    """What one node needs; empty lists: nothing."""

    def __init__(self, node):
        self.node = node
        self.want = []    # (nic, mtu, address) that it must have after the change
        self.drop = []    # (nic, address) that the plan does not have
        self.write = {}   # path: (content, mode)
        self.remove = []  # paths that an earlier `up` wrote
        self.foreign = set() # other files that name these NICs, and stay
        self.replaced = set() # netplan files that are about them alone, and go
        self.before = {}  # path: content, for the diff
        self.runtime = [] # lines for people: what changes without a file

    def is_empty(self):
        """Whether the node is as it should be."""
        return not (self.write or self.remove or self.drop or self.runtime)

    def ports(self):
        """All NICs of the plan."""
        return [nic for nic, _, _ in self.want]

    def paths(self):
        """All files that change."""
        return sorted(set(self.write) | set(self.remove))

    def diff(self):
        """As `diff -u` prints it, one text for each file."""
        for path in self.paths():
            old = self.before.get(path, "")
            new = self.write.get(path, ("", 0))[0]
            yield path, clean("".join(difflib.unified_diff(
                old.splitlines(True), new.splitlines(True),
                "%s:%s" % (self.node.name, path) if old else "/dev/null",
                "%s:%s" % (self.node.name, path) if new else "/dev/null")))


# --- addresses --------------------------------------------------------------------------------

def nic_of(nodes, port):
    """The Nic of (node name, NIC name)."""
    return nodes[port[0]].nics[port[1]]


def addresses_elsewhere(nodes, cable):
    """All addresses of the nodes that are not on this cable's ends."""
    for node in nodes.values():
        yield from node.other_addresses
        for nic in node.nics.values():
            if (node.name, nic.name) not in cable:
                yield from nic.global_addresses()


def right_addresses(nodes, cable):
    """The addresses of both ends if they share a subnet that is nowhere else, or None."""
    others = list(addresses_elsewhere(nodes, cable))
    for a in nic_of(nodes, cable.a).global_addresses():
        for b in nic_of(nodes, cable.b).global_addresses():
            if (a.version == b.version and a.network == b.network and a.ip != b.ip and
                    not any(o.version == a.version and o.network.overlaps(a.network)
                            for o in others)):
                return a, b
    return None


def range_free(nodes, cables, kept):
    """The start of a range in which no node has an address: --range of `fi_mesh plan`."""
    new = len(cables) - len(kept)
    used = [a.network for node in nodes.values()
            for a in node.other_addresses + [a for nic in node.nics.values()
                                             for a in nic.global_addresses()]
            if a.version == 4]
    for start in range(100, 256 - min(new, 100)):
        subnets = [ipaddress.ip_network("192.168.%d.0/24" % (start + i)) for i in range(new)]
        if not any(u.overlaps(s) for u in used for s in subnets):
            return "192.168.%d.0/16" % start
    return None


def mtu_of(nodes, cables, asked):
    """One MTU for all cables: what was asked for, or what all ends have, or jumbo frames."""
    ends = [nic_of(nodes, port) for cable in cables for port in cable]
    usual = MTU_INFINIBAND if ends[0].infiniband() else MTU_ETHERNET
    if asked:
        return asked
    if len({end.mtu for end in ends}) == 1 and ends[0].mtu >= usual:
        return ends[0].mtu
    return min([usual] + [end.max_mtu for end in ends])


def link_layer(nodes, cables):
    """True for InfiniBand; a Failure for a mixture."""
    kinds = {nic_of(nodes, port).infiniband() for cable in cables for port in cable}
    if len(kinds) > 1:
        raise Failure("some of these cables are InfiniBand, some Ethernet: name the ports of one "
                      "kind with --ports, and run this once for each kind")
    return kinds.pop()


# --- `fi_mesh plan` ---------------------------------------------------------------------------

class Plan:
    """The plan of `fi_mesh plan`, with the files for each tool that a node has."""

    def __init__(self, options, nodes, wires):
        self.options, self.nodes = options, nodes
        self.cables, self.halves = wires.cables, wires.halves
        self.kept = {}
        for cable in self.cables:
            right = right_addresses(nodes, cable)
            if right:
                self.kept[cable] = right
        self.mtu = mtu_of(nodes, self.cables, options.mtu)
        self.files = {}  # tool: {node: {path: (content, mode)}}
        self.json = None
        self._make()

    def _list(self):
        """The file of cables for `fi_mesh plan cables:FILE`."""
        lines = []
        for cable in self.cables:
            ends = ["%s:%s" % port for port in cable]
            if cable in self.kept:
                ends = ["%s=%s" % pair for pair in zip(ends, self.kept[cable])]
            lines.append(" ".join(ends))
        return "\n".join(lines) + "\n"

    def _command(self, path):
        command = [self.options.fi_mesh, "plan", "--mtu", str(self.mtu)]
        start = self.options.range or range_free(self.nodes, self.cables, self.kept)
        if start:
            command += ["--range", start]
        if link_layer(self.nodes, self.cables):
            command.append("--infiniband")
        management = {tuple(sorted(node.management)) for node in self.nodes.values()}
        if len(management) == 1 and len(min(management)) == 1:
            command += ["--management", min(management)[0]]
        return command + ["cables:" + path] + list(self.nodes)

    def _run(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        if done.returncode:
            raise Failure(done.stderr.decode(errors="replace").strip() or
                          "%s ended with status %d" % (" ".join(command), done.returncode))
        return done.stdout.decode()

    def _make(self):
        with tempfile.TemporaryDirectory(prefix="fi_mesh-up-") as folder:
            path = os.path.join(folder, "cables")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self._list())
            command = self._command(path)
            self.json = json.loads(self._run(command + ["--json"]))
            for tool in sorted({node.tool for node in self.nodes.values()} - {"ip"}):
                out = os.path.join(folder, tool)
                self._run(command + ["--config", tool, "--write", out])
                self.files[tool] = {name: read_tree(os.path.join(out, name, tool))
                                    for name in self.nodes}

    def ends(self):
        """(node, nic, address) of all cables."""
        for cable in self.json["cables"]:
            for end in cable["ends"]:
                yield end["node"], end["port"], ipaddress.ip_interface(end["address"])


def read_tree(top):
    """{path on the node: (content, mode)}"""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                found["/" + os.path.relpath(path, top)] = (file.read(),
                                                           os.stat(path).st_mode & 0o777)
    return found


# --- changes ----------------------------------------------------------------------------------

def needs(nic, mtu, address):
    """What a NIC lacks, in words."""
    if address not in nic.addresses:
        yield "address %s" % address
    if nic.mtu != mtu:
        yield "MTU %d (now %d)" % (mtu, nic.mtu)
    if not nic.up:
        yield "up"


def port_of(path):
    """The port that a file of ours is for, or None."""
    found = PORT_FILE.fullmatch(path)
    return found and found.group(1)


def is_stale(node, path):
    """
    Whether a port's file that an earlier `up` wrote, and that this plan does not have, goes: not
    those of ports that --ports leaves out. What several ports need stays until `down`, and so does
    a file that `up` once removed and somebody made again.
    """
    return port_of(path) in node.own_ports - node.left_out


def shares_wire(plan, node):
    """Whether two NICs of the node hear each other: halves of one port."""
    return any(plan.halves.get(cable, 1) > 1 and node.name in (cable.a[0], cable.b[0])
               for cable in plan.cables)


def changes_make(plan):
    """A Change for each node, without the contents of its present files."""
    changes = {node.name: Change(node) for node in plan.nodes.values()}
    managed = {name: set() for name in changes}
    for name, nic_name, address in plan.ends():
        change, nic = changes[name], plan.nodes[name].nics[nic_name]
        change.want.append((nic_name, plan.mtu, address))
        lacks = list(needs(nic, plan.mtu, address))
        extra = [(nic_name, old) for old in nic.global_addresses() if old != address]
        # An address that is only taken away would be back after the next boot.
        if lacks or extra or nic_name in change.node.own_ports:
            managed[name].add(nic_name)
        change.runtime += ["%s: %s" % (nic_name, what) for what in lacks]
        change.drop += extra
    for name, change in changes.items():
        files = {path: content for path, content in
                 plan.files.get(change.node.tool, {}).get(name, {}).items()
                 if port_of(path) in managed[name]}
        if shares_wire(plan, change.node):
            files[SYSCTL] = (SYSCTL_TEXT, 0o644)
        change.write = files
        change.remove = [path for path in change.node.files
                         if path not in files and is_stale(change.node, path)]
    return changes


# Files in which a tool is told of a NIC; netplan merges all of its own, networkd takes the first.
FOREIGN = r"""
for file in /etc/netplan/*.yaml /etc/systemd/network/*.network /etc/network/interfaces \
	/etc/network/interfaces.d/*; do
	for nic in %s; do
		! grep -v '^[[:space:]]*#' "$file" 2>/dev/null | grep -qwF -e "$nic" || echo "$file"
	done
done
"""

# Which of these netplan files have nothing but addresses of these NICs: netplan would merge them
# with ours. One that also says something else (a renderer for all, match, routes), or that a
# service writes again, is not ours to remove; nor is one with a key twice, which netplan reads.
ALONE = r"""
python3 -c '
import os, sys, yaml
KEYS = {"accept-ra", "addresses", "dhcp4", "dhcp6", "link-local", "mtu", "optional"}
def mapping(node, keys):
    found = {key.value: value for key, value in node.value}
    if len(found) < len(node.value) or not set(found) <= set(keys):
        raise ValueError
    return found
at = sys.argv.index("--")
for path in sys.argv[at + 1:]:
    try:
        with open(path) as file:
            network = mapping(yaml.compose(file), ["network"])["network"]
        ends = mapping(network, ["version", "ethernets"])["ethernets"]
        for end in mapping(ends, sys.argv[1:at]).values():
            mapping(end, KEYS)
        if not os.path.basename(path).startswith(("50-cloud-init", "90-NM-")):
            print(path)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError):
        pass
' %s -- %s
"""

READ = "for path in %s; do echo \"@@@ $path\"; [ ! -f \"$path\" ] || base64 \"$path\"; done\n"


def file_content(data):
    """A file, as base64 prints it."""
    try:
        return base64.b64decode(data, validate=True).decode(errors="replace")
    except ValueError:
        return answer.refuse(data, "base64")


def contents_take(change, text):
    """Takes what the node's files have now; files that are right need no change."""
    path = None
    encoded = dict.fromkeys(change.paths(), "")
    for line in text.splitlines():
        if line.startswith("@@@ "):
            path = line[4:]
        elif path in encoded:
            encoded[path] += line
    change.before = {path: answer.wanted(change.node, path, file_content, data)
                     for path, data in encoded.items() if data}
    change.write = {path: value for path, value in change.write.items()
                    if change.before.get(path) != value[0]}
    change.remove = [path for path in change.remove if path in change.before]


def paths_print(change, commands, note):
    """The paths that a Script prints on the node, as root."""
    done = change.node.run(commands, as_root=True, note=note)
    return {answer.wanted(change.node, "a file", answer.path, line)
            for line in done.out.splitlines()}


def foreign_find(change):
    """Finds the other files that name the change's NICs, and which of them go."""
    found = paths_print(change, script(FOREIGN, change.ports()),
                        "(looks for other files that name these NICs)")
    found -= set(change.paths())
    netplan = sorted(path for path in found - set(change.node.files)
                     if path.startswith("/etc/netplan/"))
    ports = [port_of(path) for path in change.write if port_of(path)]
    if netplan:
        change.replaced = paths_print(change, script(ALONE, ports, netplan),
                                      "(looks whether they have anything else)") & set(netplan)
    change.foreign = found - change.replaced
    change.remove += sorted(change.replaced)


def contents_read(change):
    """Reads the files on the node, as root: some are for root only."""
    if change.write:
        foreign_find(change)
    paths = change.paths()
    if not paths:
        return
    done = change.node.run(script(READ, paths), as_root=True,
                           note="(reads %s)" % ", ".join(paths))
    if done.status:
        raise Failure("%s: cannot read its files: %s" % (change.node.name, done.complaint()))
    contents_take(change, done.out)
