# SPDX-License-Identifier: Apache-2.0
"""test_lies.py - `fi_mesh up` and a node that lies. Run by `scons test`."""
import argparse
import ast
import json
import os
import random
import re
import stat
import sys
import tempfile
import unittest
import unittest.mock

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(TOP, "fi_utils/cluster/program")
sys.path.insert(0, PROGRAM)

# pylint: disable=wrong-import-position
import apply
import install
import look
import neighbours
import plan as planning
import probe
import report as reports
import verify
import wires as wiring
from remote import SHOWN_MAX, Failure, Node, Result, Script, clean, clean_line, script

# What reaches a shell unquoted runs `touch FILE`.
COMMANDS = ("x;touch${IFS}FILE;", "$(touch${IFS}FILE)", "`touch${IFS}FILE`", "x&&touch${IFS}FILE",
            "x|touch${IFS}FILE", "x\ntouch FILE\n", "x';touch${IFS}FILE;'", 'x";touch${IFS}FILE;"',
            "x>FILE", "x/e;touch${IFS}FILE;s/x", "-x;touch${IFS}FILE", "x touch FILE")


class LocalNodes(unittest.TestCase):
    """Nodes that are this machine: `ssh` runs the shell here, in a folder of the test."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program("ssh", 'while [ "$1" != -- ]; do shift; done; shift 2\n'
                            'cd %s && exec /bin/sh -c "$*"\n' % self.folder.name)
        self.program("fabric_pingpong", "echo $MASTER_ADDR\n")

    def program(self, name, text):
        """A script in the folder."""
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, stat.S_IRWXU)

    def node(self, name):
        """A node."""
        return Node(name, argparse.Namespace(
            ssh=os.path.join(self.folder.name, "ssh"), bin=self.folder.name, verbose=False,
            connect_timeout=1))

    def untouched(self, lie):
        """Fails if a command of the lie has run."""
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "FILE")), lie)


class QuoteTest(LocalNodes):
    """No value reaches a shell as anything but a word."""

    def test_address(self):
        for lie in COMMANDS:
            nodes = [self.node("a"), self.node("b")]
            nodes[0].address, nodes[1].address = "10.250.0.1;" + lie, "10.250.0.2"
            verify.pingpong(nodes, ["a", "b"], 29500, ["--repeat", "3"])
            self.untouched(lie)

    def test_only_scripts(self):
        """A text that was put together otherwise does not run."""
        with self.assertRaises(TypeError):
            self.node("a").run("echo %s\n" % "x")

    def test_templates(self):
        """A template is written down, or has a name: it is not made of values."""
        for name in os.listdir(PROGRAM):
            if not name.endswith(".py"):
                continue
            with open(os.path.join(PROGRAM, name), encoding="utf-8") as file:
                tree = ast.parse(file.read())
            for call in ast.walk(tree):
                if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "script":
                    self.assertIsInstance(call.args[0], (ast.Constant, ast.Name), name)


class OutputTest(LocalNodes):
    """What a node prints is bounded, and says nothing to a terminal."""

    def test_too_much(self):
        done = self.node("a").run(script("yes '@@@ tool'\n"))
        self.assertEqual((done.status, done.complaint()), (255, "it prints more than 1 MiB"))
        with self.assertRaisesRegex(Failure, "^a: .*it prints more than 1 MiB$"):
            self.program("fi_mesh", "yes\n")
            look.look(self.node("a"))

    def test_serve(self):
        """A first line that does not end; an ssh that ends."""
        for name, text, why in (("fi_mesh", "yes | tr -d '\\n'", "it prints more than 1 MiB"),
                                ("ssh", "printf 'no \\033[2Jway\\n' >&2", r"no \?\[2Jway")):
            self.program(name, text + "\n")
            with self.assertRaisesRegex(Failure, "^b: .*" + why):
                with verify.Serving([self.node("b")], 18620):
                    self.fail("it serves")

    def test_login(self):
        """A slow one has --connect-timeout; one that is refused, a command."""
        self.program("ssh", "sleep 0.5; echo 'admin@b: Permission denied (publickey).' >&2\n")
        with self.assertRaisesRegex(Failure, "denied.*; to log in with a key: ssh-copy-id b$"):
            look.look(self.node("b"))
        self.assertIn("denied", self.node("b").run(script("true\n"), timeout=0).err)

    def test_install(self):
        """The package arrives whole; a tool that fails, and a package for which there is none."""
        deb, rpm = (os.path.join(self.folder.name, "a b" + kind) for kind in (".deb", ".rpm"))
        for path in deb, rpm:
            with open(path, "wb") as file:
                file.write(bytes(range(256)) * 5000)
        self.program("sudo", 'shift; exec "$@"\n')
        self.program("apt-get", 'for file; do :; done; cmp "$file" "%s" && : >done\n' % deb)
        for name in "dnf", "zypper":
            self.program(name, "echo no space >&2; exit 1\n")
        install.install([self.node("a")], deb)
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "done")))
        with self.assertRaisesRegex(Failure, r"^a: cannot install .*a b\.rpm: no space$"):
            install.install([self.node("a")], rpm)
        with self.assertRaisesRegex(Failure, "nothing there installs such a package"):
            install.install([self.node("a")], __file__)

    def test_nccl(self):
        """It runs where PyTorch finds a GPU on all nodes, with the plan's environment."""
        nodes = [self.node("a"), self.node("b")]
        for node in nodes:
            node.address = "10.250.0.1"
        self.program("python3", "[ $1 != -c ] || exit 0; grep -q 'PyTorch over the mesh' $1 && "
                                "echo $RANK/$WORLD_SIZE at $MASTER_ADDR, $NCCL_NET $NAME\n")
        self.assertEqual(verify.without_gpu(nodes), [])
        found = verify.all_reduce(nodes, ["b", "a"], 29500, {"NCCL_NET": "Mesh", "NAME": "x;y"},
                                  os.path.join(TOP, "examples/all_reduce.py"))
        self.assertEqual(found, (True, "0/2 at 10.250.0.1, Mesh x;y\n", []))
        self.program("python3", "echo 'No module named torch' >&2; exit 1\n")
        self.assertEqual(verify.without_gpu(nodes), ["a", "b"])

    def test_clean(self):
        done = self.node("a").run(script(r"printf '\033]0;x\007\302\233y\r\n\377\tz\0\n'"))
        self.assertEqual(done.out, "?]0;x??y\n?\tz?\n")
        done = self.node("a").run(script("printf %s; exit 1\n", "x" * 5000))
        self.assertEqual(len(done.complaint()), SHOWN_MAX)


NIC = {"netdev": "p0", "kind": "physical", "link_kind": None, "default_route": False,
       "mac": "02:00:00:00:00:01", "mtu": 1500, "speed_mbps": 100000, "admin_up": True,
       "carrier": True, "rdma": {"device": "mlx5_0"}}
LINK = {"ifname": "p0", "address": "02:00:00:00:00:01", "max_mtu": 9978, "link_type": "ether"}
INFO = {"ifname": "p0", "addr_info": [{"local": "10.1.0.1", "prefixlen": 24},
                                      {"local": "fe80::1", "prefixlen": 64}]}
FINDING = {"verdict": "fail", "text": "it is slow", "evidence": None, "fix": "another cable"}
CHECK = {"id": "link", "title": "over p0", "verdict": "warn", "findings": [FINDING], "nic": "p0",
         "peer_nic": "p0", "provider": "tcp", "to_gbps": 99.5, "from_gbps": None}


def part(name, text):
    """A part of what look.LOOK prints."""
    return "@@@ %s\n%s\n" % (name, text if isinstance(text, str) else json.dumps(text))


def report(connection="10.0.0.9 5 10.0.0.1 22", tool="nm", nic=None, link=None, info=None):
    """What a node prints for look.LOOK, with other values."""
    return (part("id", "1000") + part("connection", connection) +
            part("fi_mesh", "fi_mesh 1, protocol version 3") +
            part("nics", {"nics": [dict(NIC, **nic or {}), dict(NIC, netdev="p1")]}) +
            part("links", [dict(LINK, **link or {})]) +
            part("addresses", [dict(INFO, **info or {})]) + part("tool", tool))


class Told:
    """A node, without ssh, that has said something."""

    def __init__(self, name, text="", status=0):
        self.name, self.out, self.was_down, self.status = name, text, [], status
        self.own_ports, self.files, self.tool = set(), [], "ip"
        self.ran = []  # scripts

    def run(self, commands, **_):
        """Any script."""
        self.ran.append(commands)
        return Result(self.status, self.out, "")


class RefuseTest(unittest.TestCase):
    """What a node says is parsed where it is read, and a lie is a Failure with its name."""

    def refused(self, what, lie, function, *arguments):
        """The function has to fail, with the node, the place and the lie in one clean line."""
        with self.assertRaises(Failure) as caught:
            function(*arguments)
        words = str(caught.exception)
        self.assertRegex(words, "^a: .*" + what)
        self.assertIn(clean_line(lie)[:10], words)
        self.assertEqual(words, clean_line(words))

    def test_look(self):
        for lie in COMMANDS:
            self.refused("SSH_CONNECTION", "10.0.0.1;" + lie.split()[0], look.take, Told("a"),
                         report("10.0.0.9 2 10.0.0.1;%s 22" % lie))
        for lie in COMMANDS + ("p0\x1b[2J", "p0\u202e", "p" * 16, "p0/..", "", "\u0663"):
            for place, values in (
                    ("tool", {"tool": lie}), (r"nics\[0\]\.netdev", {"nic": {"netdev": lie}}),
                    (r"\[0\]\.ifname", {"link": {"ifname": lie}}),
                    ("addr_info", {"info": {"addr_info": [{"local": lie, "prefixlen": 24}]}})):
                self.refused(place, lie, look.take, Told("a"), Result(0, report(**values), "").out)

    def test_values(self):
        for key, value in (("mtu", "1500"), ("mtu", -1), ("mtu", True), ("speed_mbps", 1e300),
                           ("carrier", 1), ("kind", None), ("rdma", []), ("netdev", ["p0"])):
            self.refused(key, "", look.take, Told("a"), report(nic={key: value}))
        for entry in {"local": "10.0.0.1", "prefixlen": 33}, {"local": "::1"}, "10.0.0.1/8", None:
            self.refused("addr_info", "", look.take, Told("a"), report(info={"addr_info": [entry]}))
        self.refused("deeper than", "", look.take, Told("a"),
                     report().replace("[{", "[" * 99999 + "{", 1))
        # Members that nobody uses reach the JSON of the command.
        for value, why in (("[" * 17 + "]" * 17, "deeper than"), ("9" * 4000, "number"),
                           ("1e999", "number"), ("NaN", "number")):
            self.refused(why, "", look.take, Told("a"),
                         report(nic={"own": 77777}).replace("77777", value))

    def test_zone(self):
        """Behind '%', an address may be any text to Python."""
        node = Told("a")
        look.take(node, report("10.0.0.9 2 fe80::1%;touch${IFS}FILE; 22"))
        self.assertEqual(node.address, "fe80::1")

    def test_files(self):
        for lie in COMMANDS + ("/etc/../root/x", "/etc/x y", "/root/x", "/etc/.", "/etc/\x1b"):
            self.refused("files", "", look.own_files, Told("a", "file %s\n" % lie))
            self.refused("runtime", "", look.own_files, Told("a", "port +%s\n" % lie))
        change = planning.Change(Told("a"))
        change.remove = ["/etc/x"]
        self.refused("/etc/x", "!!", planning.contents_take, change, "@@@ /etc/x\n!!\n")
        # A file that was not asked for is not looked at: its name may have a megabyte.
        planning.contents_take(change, "@@@ /etc/%s\n!!\n" % ("y" * 5000))
        self.assertEqual((change.before, change.remove), ({}, []))

    def test_neighbours(self):
        for lie in COMMANDS:
            self.refused("ping", "", probe.answers_of, Told("a"), "answer p0 %s\n" % lie)
            self.refused("netdev", lie, neighbours.report_of, Told("a"), Result(
                0, json.dumps({"node_id": "0x1", "nics": [{"netdev": lie, "neighbours": []}]}), ""))


class MutationTest(unittest.TestCase):
    """
    A true report with random changes: the program goes on or ends with a Failure, and whatever it
    would print is clean.
    """

    ROUNDS = 4000
    VALUES = COMMANDS + (None, True, -1, 0, 1 << 70, 1e308, "", "\x1b[2J", "\u202e\ud800", [], {},
                         [[]], {"nics": []}, "10.0.0.1/8", "fe80::1%x", "0x1", "p0", "p1", 3.5)

    def replaced(self, value):
        """@value with one of its parts exchanged."""
        inner = list(value) if isinstance(value, dict) else (
            list(range(len(value))) if isinstance(value, list) else [])
        if not inner or self.random.random() < 0.1:
            return self.random.choice(self.VALUES)
        key = self.random.choice(inner)
        copy = value.copy()
        if self.random.random() < 0.1:
            del copy[key]
        else:
            copy[key] = self.replaced(value[key])
        return copy

    def damaged(self, text):
        """@text with bytes that are lost, doubled or others, as it arrives."""
        data = bytearray(text.encode(errors="replace"))
        for _ in range(max(self.random.randrange(-3, 4), 0)):
            at = self.random.randrange(len(data) + 1)
            end = at + self.random.randrange(12)
            data[at:end] = self.random.choice((
                b"", data[at:end] * 2, bytes([self.random.randrange(256)]), b"\n@@@ nics\n",
                b"[" * 3000, b"\\u001b", b"\xc2\x9b", b"1" * 5000, b"NaN", b"answer p0 $(x)\n"))
        return Result(0, bytes(data).decode(errors="replace"), "")

    def all_clean(self, value):
        """Fails if a text in @value would say something to a terminal."""
        if isinstance(value, str):
            self.assertEqual(value, clean(value))
        elif isinstance(value, dict):
            self.all_clean(list(value) + list(value.values()))
        elif isinstance(value, (list, tuple, set)):
            for entry in value:
                self.all_clean(entry)

    def rounds(self, seed, function, make):
        """Runs function(Result) on changes of what make() returns."""
        self.random = random.Random(seed)
        went_on = 0
        for _ in range(self.ROUNDS):
            # Bytes or values, or both.
            change = self.replaced if self.random.random() < 0.7 else lambda value: value
            done = self.damaged(make(change))
            try:
                self.all_clean(function(done))
                went_on += 1
            except Failure as failure:
                self.all_clean(str(failure))
                self.assertRegex(str(failure), "^[ab]: ")
                self.assertLess(len(str(failure)), 2 * SHOWN_MAX)
        self.assertGreater(went_on, self.ROUNDS // 20)

    def test_look(self):
        def all_of(done):
            nodes = [Told("a"), Told("b")]
            look.take(nodes[0], done.out)
            look.take(nodes[1], report(
                "10.0.0.9 2 10.0.0.2 22", link={"address": "02:00:00:00:00:02"},
                info={"addr_info": [{"local": "10.1.0.2", "prefixlen": 24}]}))
            return self.printed({node.name: node for node in nodes}, {("a", "p0"): {("b", "p0")}})

        self.rounds(1, all_of, lambda change: (
            part("id", "0") + part("connection", "10.0.0.9 2 fe80::1%eth0 22") +
            part("fi_mesh", "fi_mesh 1, protocol version 3") +
            part("nics", change({"nics": [NIC, dict(NIC, netdev="p1")]})) +
            part("links", change([LINK])) + part("addresses", change([INFO])) + part("tool", "ip")))

    def printed(self, nodes, heard, strangers=None):
        """What the command prints of nodes and cables."""
        nodes = {name: node for name, node in nodes.items() if node.nics}
        heard = {port: others for port, others in heard.items()
                 if all(name in nodes and nic in nodes[name].nics for name, nic in [port, *others])}
        found = wiring.wires_of(heard, list(nodes))
        paper = reports.Document("up")
        paper.nodes(nodes.values())
        faults = wiring.faults_of(nodes, heard, strangers or {}, found) if nodes else []
        for cable in found.cables:
            planning.right_addresses(nodes, cable)
            planning.mtu_of(nodes, [cable], None)
            planning.range_free(nodes, [cable], {})
        return [paper.root, reports.cables_text(nodes, found), reports.faults_text(faults)]

    def test_neighbours(self):
        nodes = [Told("a"), Told("b")]
        for node in nodes:
            look.take(node, report())
        true = {"node_id": "0x1", "nics": [{"netdev": "p0", "neighbours": [
            {"node": "b", "node_id": "0x2", "netdev": "p1"}, {"node": "x", "node_id": None}]}]}
        other = {"node_id": "0x2", "nics": [{"netdev": "p1", "neighbours": []}]}

        def heard(done):
            found = neighbours.report_of(nodes[0], done)
            return self.printed({node.name: node for node in nodes},
                                *neighbours.hear(nodes, {"a": found, "b": other}))

        self.rounds(2, heard, lambda change: json.dumps(change(true)))

    def test_probe(self):
        nodes = [Told("a"), Told("b")]
        for node in nodes:
            look.take(node, report())
        self.rounds(3, lambda done: self.printed(
            {node.name: node for node in nodes},
            *probe.hear(nodes, {"a": probe.answers_of(nodes[0], done.out)})), lambda change: (
                "answer p0 fe80::9\nanswer p1 fe80::7\nneighbours\n" + json.dumps(change(
                    [{"dev": "p0", "dst": "fe80::9", "lladdr": "02:00:00:00:00:09"}]))))

    def test_checks(self):
        node = Told("a")

        def checks(done):
            found = {"a": verify.checks_of(node, done, "fi_mesh check", verify.NODE_CHECKS)}
            return [found, reports.nodes_text(found)]

        self.rounds(4, checks, lambda change: json.dumps(change(
            {"pass": 1, "unknown": 0, "warn": 1, "fail": 0, "checks": [CHECK]})))

        def links(done):
            found = {"a": verify.checks_of(node, done, "fi_mesh check --peer", verify.PEER_CHECKS)}
            return [found, reports.links_text(found), list(verify.findings_of(found))]

        self.rounds(5, links, lambda change: json.dumps(change(
            {"peers": [{"address": "10.1.0.2", "node": "b", "sections": [CHECK]}]})))

    def only_words(self, nodes):
        """Fails if a script has something of a lie that is not quoted."""
        for commands in [commands for node in nodes for commands in node.ran]:
            self.assertIsInstance(commands, Script)
            bare = re.sub("'[^']*'", "", commands)
            self.assertNotRegex(bare, r"touch|IFS|FILE|[^\n\t -~]|\$\(x\)")

    def test_scripts(self):
        """What is run on the nodes after a look at one that lies."""
        def scripts(done):
            nodes = [Told("a"), Told("b")]
            look.take(nodes[0], done.out)
            look.take(nodes[1], report("10.0.0.9 2 10.0.0.2 22"))
            for node in nodes:
                look.ports_on(node, list(node.nics))
                look.ports_off_again(node)
            problems = probe.probe_rest(nodes, {}, {})
            if nodes[0].address:
                verify.pingpong(nodes, ["a", "b"], 29500, ["--repeat", 3])
            self.only_words(nodes)
            return problems

        self.rounds(8, scripts, lambda change: (
            part("id", "0") + part("connection", "10.0.0.9 2 10.0.0.1 22") +
            part("fi_mesh", "fi_mesh 1, protocol version 3") +
            part("nics", change({"nics": [dict(NIC, admin_up=False), dict(NIC, netdev="p1")]})) +
            part("links", change([LINK])) + part("addresses", change([INFO])) + part("tool", "ip")))

    def test_apply(self):
        """Answers to a change, each of which is kept, taken back or a problem."""
        def changed(done):
            node = Told("a", done.out, self.random.choice((0, 0, 0, 1, 255)))
            transaction = apply.Transaction([node], 0)
            fine = transaction.run()
            self.assertEqual(fine, not transaction.problems)
            self.only_words([node])
            for problem in transaction.problems:
                self.assertLess(len(problem), 2 * SHOWN_MAX)
            said = []
            with unittest.mock.patch("time.sleep"), unittest.mock.patch(
                    "time.monotonic", side_effect=[0, 1, 61]):
                transaction.await_return(said.append)
            return transaction.problems + said + [look.leftover_undo(node)]

        self.rounds(9, changed, lambda _: self.random.choice((
            "applied\n", "kept\n", "restored\n", "here\n", "undone\n", "nothing to undo\n",
            "reverted: p0 has MTU 1500, not 9000\n",
            "another change of this node is not finished yet\n")))

    def test_files(self):
        def files(done):
            node = Told("a", done.out)
            look.own_files(node)
            change = planning.Change(node)
            change.remove = node.files
            planning.contents_take(change, "")
            self.only_words([node])
            return [node.files, node.own_ports]

        self.rounds(6, files, lambda _: "file /etc/netplan/60-mesh-p0.yaml\nport p0\n")

        def contents(done):
            change = planning.Change(Told("a"))
            change.write = {"/etc/x": ("new\n", 0o644)}
            planning.contents_take(change, done.out)
            return list(change.diff())

        self.rounds(7, contents, lambda _: "@@@ /etc/x\nb2xkG1sySgo=\n@@@ /etc/y\n")


if __name__ == "__main__":
    unittest.main()
