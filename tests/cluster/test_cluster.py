# SPDX-License-Identifier: Apache-2.0
"""test_cluster.py - the parts of `fi_mesh up` that need no other node. Run by `scons test`."""
import argparse
import ipaddress
import os
import stat
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "fi_utils/cluster/program"))

# pylint: disable=wrong-import-position
import look
import neighbours
import plan
import probe
import report
import wires
from remote import Failure, Node, Result, host_name, script


def nic(name, addresses=(), mtu=1500, speed=100000, rdma=False, up=True, kind="physical"):
    """A Nic as look.take() makes it."""
    entry = {"netdev": name, "kind": kind, "mac": None, "mtu": mtu, "speed_mbps": speed,
             "admin_up": up, "carrier": up, "rdma": {} if rdma else None, "pci_path": None}
    # A MAC that depends on the name only.
    mac = "02:00:00:00:%02x:%02x" % (sum(map(ord, name)) % 256, len(name))
    return look.Nic(entry, {"address": mac, "max_mtu": 9978},
                    [ipaddress.ip_interface(text) for text in addresses])


class FakeNode:
    """A node without ssh."""

    def __init__(self, name, nics, other=()):
        self.name, self.nics = name, {n.name: n for n in nics}
        self.other_addresses = [ipaddress.ip_interface(text) for text in other]
        self.management, self.own_ports, self.files = {"eno1"}, set(), []
        self.tool, self.was_down, self.left_out = "ip", [], set()


def mesh(*nodes):
    """{name: node}"""
    return {node.name: node for node in nodes}


def both(*pairs):
    """{port: ports that answer}: each pair hears each other."""
    heard = {}
    for a, b in pairs:
        heard.setdefault(a, set()).add(b)
        heard.setdefault(b, set()).add(a)
    return heard


def kinds(faults):
    """The kinds of faults, in their order."""
    return [fault.kind for fault in faults]


class WiresTest(unittest.TestCase):
    """Cables and faults."""

    def triangle(self, **options):
        """Three nodes with two ports, all cabled."""
        nodes = mesh(*(FakeNode(name, [nic("p0", ["fe80::1/64"], **options),
                                       nic("p1", ["fe80::2/64"], **options)])
                       for name in "abc"))
        return nodes, both((("a", "p0"), ("c", "p1")), (("a", "p1"), ("b", "p0")),
                           (("b", "p1"), ("c", "p0")))

    def faults(self, nodes, heard, strangers=None, shape=""):
        """All faults."""
        found = wires.wires_of(heard, list(nodes))
        return wires.faults_of(nodes, heard, strangers or {}, found, shape)

    def test_crossed(self):
        nodes, heard = self.triangle()
        found = wires.wires_of(heard, list(nodes))
        self.assertEqual(len(found.cables), 3)
        self.assertIn(wires.Cable(("a", "p0"), ("c", "p1")), found.cables)
        self.assertEqual(self.faults(nodes, heard), [])

    def test_spark(self):
        """The halves of both ports of a cable hear each other: one cable, two halves."""
        ports = ["enP2p1s0f0np0", "enP2p1s0f1np1", "enp1s0f0np0", "enp1s0f1np1"]
        nodes = mesh(*(FakeNode(name, [nic(p, ["fe80::1/64"]) for p in ports]) for name in "abc"))
        wire = [(("a", 0), ("b", 1)), (("b", 0), ("c", 1)), (("c", 0), ("a", 1))]
        heard = {}
        for (x, i), (y, k) in wire:
            group = [(x, ports[i]), (x, ports[i + 2]), (y, ports[k]), (y, ports[k + 2])]
            for port in group:
                heard[port] = set(group) - {port}
        found = wires.wires_of(heard, list(nodes))
        self.assertEqual(len(found.cables), 6)
        self.assertEqual(set(found.halves.values()), {2})
        self.assertIn(wires.Cable(("a", ports[0]), ("b", ports[1])), found.cables)
        self.assertIn(wires.Cable(("a", ports[2]), ("b", ports[3])), found.cables)
        self.assertEqual(wires.faults_of(nodes, heard, {}, found, ""), [])
        self.assertTrue(report.cables_text(nodes, found).startswith("3 cables between 3 nodes"))

    def test_switch(self):
        nodes, _ = self.triangle()
        group = [("a", "p0"), ("b", "p0"), ("c", "p0")]
        heard = {port: set(group) - {port} for port in group}
        found = wires.wires_of(heard, list(nodes))
        self.assertEqual((found.cables, found.switches), ([], [group]))
        self.assertIn("switch", kinds(self.faults(nodes, heard, shape=None)))

    def test_half(self):
        nodes, heard = self.triangle()
        heard[("b", "p0")] = set()
        fault = self.faults(nodes, heard)[0]
        self.assertEqual((fault.kind, fault.verdict), ("half", "fail"))
        self.assertIn("a:p1 - b:p0 is half-connected: a:p1 gets answers, b:p0 gets none",
                      fault.text)
        nodes["b"].nics["p0"].addresses = []
        self.assertEqual("b:p0 has no link-local IPv6 address, and a:p1 has one",
                         self.faults(nodes, heard)[0].text)

    def test_loop_and_silence(self):
        nodes, _ = self.triangle()
        heard = both((("a", "p0"), ("a", "p1")), (("b", "p0"), ("c", "p0")))
        nodes["c"].nics["p1"] = nic("p1")
        found = self.faults(nodes, heard)
        self.assertIn("a:p0 is cabled to the same node, a:p1", [f.text for f in found])
        self.assertTrue(any("b:p1 has a link, and no node answers" in f.text for f in found))
        self.assertTrue(any("c:p1 has a link, but no link-local IPv6" in f.text for f in found))

    def test_slow_and_mtu(self):
        nodes, heard = self.triangle()
        nodes["a"].nics["p0"].speed = nodes["c"].nics["p1"].speed = 25000
        nodes["b"].nics["p0"].mtu = 9000
        nodes["b"].nics["p1"].speed = 40000
        texts = [fault.text for fault in self.faults(nodes, heard)]
        self.assertIn("a:p0 - c:p1: 25 Gb/s, and other cables of this mesh have 100 Gb/s", texts)
        self.assertIn("a:p1 - b:p0: the ends have different MTUs, 1500 and 9000", texts)
        self.assertIn("b:p1 - c:p0: the ends report different rates, 40 Gb/s and 100 Gb/s", texts)

    def test_rdma_ports_only(self):
        """An empty socket on the main board is no fault where the mesh is RDMA."""
        nodes, heard = self.triangle(rdma=True)
        nodes["a"].nics["eno2"] = nic("eno2", up=False)
        self.assertEqual(self.faults(nodes, heard), [])

    def test_ring(self):
        nodes = mesh(*(FakeNode(name, [nic("p0", ["fe80::1/64"]), nic("p1", ["fe80::2/64"])])
                       for name in "abcd"))
        heard = both((("a", "p1"), ("b", "p0")), (("b", "p1"), ("c", "p0")),
                     (("c", "p1"), ("d", "p0")))
        texts = [fault.text for fault in self.faults(nodes, heard)]
        self.assertIn("a has a cable to b only: the ring is open", texts)
        self.assertNotIn("missing", kinds(self.faults(nodes, heard, shape=None)))
        heard = both((("a", "p1"), ("b", "p0")), (("c", "p1"), ("d", "p0")))
        self.assertIn("no cable joins a, b to c, d",
                      [fault.text for fault in self.faults(nodes, heard, shape=None)])


class ProbeTest(unittest.TestCase):
    """From the output of ping and ip to ports."""

    TEXT = ("answer p0 fe80::1\nanswer p0 fe80::9\nanswer p1 fe80::1\nneighbours\n"
            '[{"dst":"fe80::1","dev":"p0","lladdr":"02:00:00:00:A0:02"},'
            '{"dst":"fe80::9","dev":"p0","state":["FAILED"]}]')

    def test_answers(self):
        node = FakeNode("a", [])
        self.assertEqual(probe.answers_of(node, self.TEXT), {
            "p0": [("fe80::1", "02:00:00:00:a0:02"), ("fe80::9", None)],
            "p1": [("fe80::1", None)]})
        with self.assertRaisesRegex(Failure, "^a: `ip -6 -j neigh`: this is not valid JSON$"):
            probe.answers_of(node, "neighbours\nnot JSON")

    def test_hear(self):
        """All ports may have one link-local address: the MAC decides."""
        nodes = [FakeNode("a", [nic("p0", ["fe80::5/64"]), nic("p1", ["fe80::6/64"])]),
                 FakeNode("b", [nic("q0", ["fe80::1/64"]), nic("q1", ["fe80::1/64"])])]
        q1 = nodes[1].nics["q1"].mac
        heard, strangers = probe.hear(nodes, {"a": {
            "p0": [("fe80::1", q1), ("fe80::5", None)], "gone": [("fe80::1", q1)],
            "p1": [("fe80::1", None), ("fe80::7", "02:ff:ff:ff:ff:ff")]}})
        self.assertEqual(heard, {("a", "p0"): {("b", "q1")}})
        self.assertEqual(strangers, {("a", "p1"): {"fe80::1", "02:ff:ff:ff:ff:ff"}})


    def test_silent(self):
        """Only ports that `fi_mesh neighbours` has heard nothing on are probed."""
        nodes = [FakeNode("a", [nic("p0"), nic("p1"), nic("p2"), nic("p3", up=False)])]
        self.assertEqual(probe.ports_silent(nodes, {("a", "p0"): {("b", "p0")}},
                                            {("a", "p1"): {"node x"}}), {"a": ["p2"]})


class NeighboursTest(unittest.TestCase):
    """From the JSON of `fi_mesh neighbours` to ports."""

    def report(self, node_id, **nics):
        """What one node prints: NIC=[(node, node_id, netdev)...]."""
        return {"node_id": node_id, "nics": [
            {"netdev": name, "neighbours": [dict(zip(("node", "node_id", "netdev"), entry))
                                            for entry in found]} for name, found in nics.items()]}

    def test_hear(self):
        nodes = [FakeNode("a", [nic("p0"), nic("p1")]), FakeNode("b", [nic("q0"), nic("q1")]),
                 FakeNode("c", [nic("p0")])]
        # Names of nodes may differ from the names that ssh knows; ids do not.
        heard, strangers = neighbours.hear(nodes, {
            "a": self.report("0x1", p0=[("host-b", "0x2", "q1")], p1=[("x", "0x9", "p5")],
                             mgmt0=[("host-b", "0x2", "q0")]),
            "b": self.report("0x2", q1=[("host-a", "0x1", "p0")], q0=[("old", None, None)]),
            "c": None})
        self.assertEqual(heard, {("a", "p0"): {("b", "q1")}, ("b", "q1"): {("a", "p0")}})
        self.assertEqual(strangers, {("a", "p1"): {"node x (p5)"}, ("b", "q0"): {"node old"}})

    def test_loop(self):
        """A cable from a node to itself; the halves of one port hear themselves, too."""
        heard, _ = neighbours.hear([FakeNode("a", [nic("p0"), nic("p1")])], {
            "a": self.report("0x1", p0=[("a", "0x1", "p1"), ("a", "0x1", "p0")])})
        self.assertEqual(heard, {("a", "p0"): {("a", "p1")}})

    def test_report(self):
        """A version without the subcommand prints its usage instead of JSON."""
        for done in Result(2, "usage: fi_mesh COMMAND\n", ""), Result(1, "", "no NIC of this node"):
            self.assertIsNone(neighbours.report_of(FakeNode("a", []), done))
        done = Result(1, '{"node_id":"0x1","nics":[]}', "")
        self.assertEqual(neighbours.report_of(FakeNode("a", []), done),
                         {"node_id": "0x1", "nics": []})


class PlanTest(unittest.TestCase):
    """Addresses that are kept, and new ones."""

    def pair(self, addresses_a, addresses_b, other=()):
        """Two nodes with one cable."""
        nodes = mesh(FakeNode("a", [nic("p0", addresses_a)], other),
                     FakeNode("b", [nic("p0", addresses_b)]))
        return nodes, wires.Cable(("a", "p0"), ("b", "p0"))

    def right(self, *arguments):
        """right_addresses() as texts."""
        found = plan.right_addresses(*self.pair(*arguments))
        return found and tuple(str(a) for a in found)

    def test_kept(self):
        self.assertEqual(self.right(["10.1.0.1/24"], ["10.1.0.9/24"]),
                         ("10.1.0.1/24", "10.1.0.9/24"))
        self.assertEqual(self.right(["fd77::1/64", "10.1.0.1/24"], ["fd77::2/64", "10.2.0.2/24"]),
                         ("fd77::1/64", "fd77::2/64"))

    def test_not_kept(self):
        self.assertIsNone(self.right(["10.1.0.1/24"], ["10.1.0.1/24"]))
        self.assertIsNone(self.right(["10.1.0.1/24"], ["10.1.0.2/16"]))
        self.assertIsNone(self.right(["10.1.0.1/24"], ["10.1.0.2/24"], ["10.1.0.77/16"]))
        self.assertIsNone(self.right(["fe80::1/64"], ["fe80::2/64"]))

    def test_range(self):
        nodes, cable = self.pair(["192.168.101.1/24"], [], ["192.168.100.7/24"])
        self.assertEqual(plan.range_free(nodes, [cable], {}), "192.168.102.0/16")
        nodes, cable = self.pair([], [], ["10.0.0.7/8"])
        self.assertEqual(plan.range_free(nodes, [cable], {}), "192.168.100.0/16")

    def test_mtu(self):
        nodes, cable = self.pair([], [])
        self.assertEqual(plan.mtu_of(nodes, [cable], None), 9000)
        self.assertEqual(plan.mtu_of(nodes, [cable], 4200), 4200)
        nodes["a"].nics["p0"].max_mtu = 4074
        self.assertEqual(plan.mtu_of(nodes, [cable], None), 4074)
        for node in nodes.values():
            node.nics["p0"].mtu = 9600
        self.assertEqual(plan.mtu_of(nodes, [cable], None), 9600)

    def test_ports_of_others(self):
        """Files of an `up` with other --ports stay; those of a port without a cable go, and of
        one that is no candidate any more."""
        for tool, path in (("netplan", "/etc/netplan/60-mesh-%s.yaml"),
                           ("nm", "/etc/NetworkManager/system-connections/mesh-%s.nmconnection"),
                           ("networkd", "/etc/systemd/network/60-mesh-%s.network")):
            node = FakeNode("a", [nic("p0"), nic("p2")])
            node.tool, node.left_out = tool, {"p1"}
            node.own_ports = {"p1", "p2", "bonded"}
            node.files = [path % "p1", path % "p2", path % "bonded", path % "mine", plan.SYSCTL]
            planned = argparse.Namespace(
                nodes=mesh(node), mtu=9000, halves={}, cables=[],
                files={tool: {"a": {path % "p0": ("", 0o600)}}},
                ends=lambda: [("a", "p0", ipaddress.ip_interface("10.0.0.1/24"))])
            change = plan.changes_make(planned)["a"]
            self.assertEqual(list(change.write), [path % "p0"])
            self.assertEqual(change.remove, [path % "p2", path % "bonded"])

    def test_alone(self):
        """Only a netplan file that has nothing but addresses of our ports goes."""
        ethernets = "network: {version: 2, ethernets: {%s}}"
        texts = {
            "goes.yaml": ethernets % "p0: {addresses: [10.0.0.1/24], dhcp4: no, mtu: 9000}, p1: {}",
            "goes-too.yaml": "network:\n  ethernets:\n    p1:\n      link-local: [ ipv4 ]\n",
            "lan.yaml": ethernets % "p0: {dhcp4: no}, eno1: {dhcp4: yes}",
            "route.yaml": ethernets % "p0: {routes: [{to: default, via: 10.0.0.9}]}",
            "match.yaml": ethernets % "p0: {match: {macaddress: 02:00:00:00:00:01}}",
            "renderer.yaml": "network: {renderer: networkd, ethernets: {p0: {dhcp4: no}}}",
            "vlan.yaml": "network: {ethernets: {p0: {}}, vlans: {v: {id: 7, link: p0}}}",
            "twice.yaml": ethernets % "eno1: {}" + "\n" + ethernets % "p0: {}",
            "key-twice.yaml": "network:\n  ethernets:\n    eno1: {}\n  ethernets:\n    p0: {}\n",
            "merge.yaml": ethernets % "p0: &a {mtu: 9000}, p1: {<<: *a}",
            "broken.yaml": "network: {", "text.yaml": "p0", "empty.yaml": "",
            "50-cloud-init.yaml": ethernets % "p0: {}", "90-NM-1-2.yaml": ethernets % "p0: {}"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            paths = [os.path.join(folder, name) for name in list(texts) + ["absent.yaml"]]
            done = subprocess.run(["sh", "-c", script(plan.ALONE, ["p0", "p1"], paths)],
                                  stdout=subprocess.PIPE, check=True)
        self.assertEqual([os.path.basename(path) for path in done.stdout.decode().split()],
                         ["goes.yaml", "goes-too.yaml"])

    def test_mixture(self):
        nodes = mesh(FakeNode("a", [nic("p0"), nic("ib0", kind="infiniband")]),
                     FakeNode("b", [nic("p0"), nic("ib0", kind="infiniband")]))
        cables = [wires.Cable(("a", n), ("b", n)) for n in ("p0", "ib0")]
        with self.assertRaisesRegex(Failure, "some Ethernet"):
            plan.link_layer(nodes, cables)


class LookTest(unittest.TestCase):
    """What a node prints."""

    NIC = ('{"netdev":"%s","kind":"%s","link_kind":%s,"default_route":%s,"mac":"","mtu":1500,'
           '"speed_mbps":0,"admin_up":true,"carrier":true,"rdma":null,"pci_path":null}')

    def text(self, nics, links="[]"):
        """The output of the script."""
        return ("@@@ id\n1000\n@@@ connection\n10.0.0.9 5 10.0.0.1 22\n@@@ fi_mesh\n"
                "fi_mesh 1, protocol version 3\n@@@ nics\n{\"nics\":[%s]}\n@@@ links\n%s\n"
                "@@@ addresses\n[{\"ifname\":\"eno1\",\"addr_info\":[{\"local\":\"10.0.0.1\","
                "\"prefixlen\":24}]}]\n@@@ tool\nnm\n" % (",".join(nics), links))

    def test_candidates(self):
        node = Node("root@a", argparse.Namespace(ssh="ssh", bin=None, verbose=False))
        links = ('[{"ifname":"p1","master":"br0"},{"ifname":"lo","link_type":"loopback"},'
                 '{"ifname":"p0","address":"02:00:00:00:00:01"}]')
        look.take(node, self.text([self.NIC % ("p0", "physical", "null", "false"),
                                   self.NIC % ("p1", "physical", "null", "false"),
                                   self.NIC % ("eno1", "physical", "null", "false"),
                                   self.NIC % ("eno2", "physical", "null", "true"),
                                   self.NIC % ("bond0", "virtual", '"bond"', "false"),
                                   self.NIC % ("br0", "bridge", '"bridge"', "false")], links))
        self.assertEqual(list(node.nics), ["p0"])
        self.assertEqual((node.root, node.address, node.tool), (False, "10.0.0.1", "nm"))
        self.assertEqual(node.management, {"eno1", "eno2"})
        self.assertEqual(str(node.other_addresses[0]), "10.0.0.1/24")
        with self.assertRaisesRegex(Failure, "has no NIC p9 .* it has: p0"):
            look.ports_restrict([node], ["p9"])
        look.ports_restrict([node], ["p9", "a=p0"])

    def test_typed_on_the_node(self):
        """ssh reaches it at 127.0.1.1; another node has seen from which address it comes."""
        a, b = [Node(name, argparse.Namespace()) for name in "ab"]
        for node, ends in ((a, "127.0.0.1 5 127.0.1.1"), (b, "10.0.0.1 6 10.0.0.2")):
            look.take(node, self.text([self.NIC % (name, "physical", "null", "false")
                                       for name in ("eno1", "p0")]).replace(
                                           "10.0.0.9 5 10.0.0.1", ends))
        look.address_from_others(a, [a, b])
        self.assertEqual((a.address, b.address, list(a.nics)), ("10.0.0.1", "10.0.0.2", ["p0"]))

    def test_missing(self):
        node = Node("a", argparse.Namespace())
        with self.assertRaisesRegex(Failure, "fi_mesh is not installed there"):
            look.take(node, "@@@ id\n0\n@@@ fi_mesh\nsh: 1: fi_mesh: not found\n")
        with self.assertRaisesRegex(Failure, "^a: `fi_mesh nics --json`: this is not valid JSON$"):
            look.take(node, self.text(["x"]))

    def test_names(self):
        self.assertEqual(host_name("admin@spark1.local"), "spark1.local")
        self.assertEqual(host_name("fd00::1"), "fd00--1")
        self.assertEqual(host_name("root@"), "")


class StartTest(unittest.TestCase):
    """How to start programs, over a management network with IPv6; tables on a terminal."""

    def test_table(self):
        self.assertEqual(report.row_text(["a", "on a net"], [1, 8], 9), "a\n    on a\n    net\n")

    def test_ipv6(self):
        node = FakeNode("a", [])
        node.address = "fd00::1"
        planned = argparse.Namespace(json={"ranks": ["a"], "environment": {"NCCL_NET": "Mesh"}})
        text = report.start_text(planned, mesh(node))
        self.assertIn("--master_addr fd00::1 ", text)
        self.assertIn("--address [fd00::1]:6379\n", text)


class SudoTest(unittest.TestCase):
    """sudo where root is needed and nowhere else; ssh's own failures are distinguished."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program("ssh", 'while [ "$1" != -- ]; do shift; done; shift 2\n'
                            'echo "$*" >>%s/log; PATH=%s:$PATH; export PATH; exec $1 $2 $3 $4\n' %
                     (self.folder.name, self.folder.name))
        self.program("sudo", 'shift; AS=root; export AS; exec "$@"\n')

    def program(self, name, text):
        """A script in the folder."""
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, stat.S_IRWXU)

    def node(self):
        """A node that is this machine."""
        return Node("me@a", argparse.Namespace(
            ssh=os.path.join(self.folder.name, "ssh"), bin="/opt/own", verbose=False,
            connect_timeout=1))

    def test_sudo(self):
        node = self.node()
        self.assertEqual(node.run(script("echo $AS-")).out, "-\n")
        self.assertEqual(node.run(script("echo $AS"), as_root=True).out, "root\n")
        node.root = True
        self.assertEqual(node.run(script("echo $AS-"), as_root=True).out, "-\n")
        with open(self.folder.name + "/log", encoding="utf-8") as log:
            self.assertEqual(log.read(), "sh -s\nsudo -n sh -s\nsh -s\n")
        self.assertTrue(node.run(script("echo $PATH")).out.startswith("/opt/own:"))
        self.assertEqual(node.run(script("exit 3")).status, 3)

    def test_no_sudo(self):
        self.program("sudo", "echo 'sudo: a password is required' >&2; exit 1\n")
        node = self.node()
        with self.assertRaisesRegex(Failure, "log in as root, or allow sudo .*password is requ"):
            look.own_files(node)


if __name__ == "__main__":
    unittest.main()
