# SPDX-License-Identifier: Apache-2.0
"""test_lies.py - `fi_mesh up` and a node that lies. Run by `scons test`."""
import argparse
import ast
import os
import stat
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(TOP, "fi_utils/cluster/program")
sys.path.insert(0, PROGRAM)

# pylint: disable=wrong-import-position
import look
import verify
from remote import SHOWN_MAX, Failure, Node, script

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

    def test_clean(self):
        done = self.node("a").run(script(r"printf '\033]0;x\007\302\233y\r\n\377\tz\0\n'"))
        self.assertEqual(done.out, "?]0;x??y\n?\tz?\n")
        done = self.node("a").run(script("printf %s; exit 1\n", "x" * 5000))
        self.assertEqual(len(done.complaint()), SHOWN_MAX)


if __name__ == "__main__":
    unittest.main()
