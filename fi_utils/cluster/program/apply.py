# SPDX-License-Identifier: Apache-2.0
"""
apply.py - changes all nodes, or none.

Each node makes its change under a guard of its own (node.sh), which takes it back unless it is
confirmed in time. The change is confirmed when all nodes have made theirs and are reachable over a
new connection.
"""
import base64
import io
import os
import secrets
import tarfile
import time

from look import STATE
from remote import on_all, script, shorten

HERE = os.path.dirname(os.path.abspath(__file__))

BEGIN = """
umask 077
S=%s
mkdir -p $S || exit 1
echo %s | base64 -d >$S/payload.tar
tar -xf $S/payload.tar -C $S node.sh || exit 1
sh $S/node.sh leftover || { rm -f $S/payload.tar; exit 1; }
rm -rf $S/next
tar -xf $S/payload.tar -C $S --no-same-owner -p || exit 1
rm -f $S/payload.tar
exec sh $S/node.sh %s %s %s
"""


def archive_add(archive, name, text, mode=0o600):
    """One file of the payload."""
    data = text.encode()
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), mode, int(time.time())
    archive.addfile(info, io.BytesIO(data))


def payload(change):
    """node.sh and what the change wants, as text."""
    buffer = io.BytesIO()
    with open(os.path.join(HERE, "node.sh"), encoding="utf-8") as file:
        script = file.read()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive_add(archive, "node.sh", script, 0o700)
        if change:
            archive_add(archive, "next/tool", change.node.tool + "\n")
            archive_add(archive, "next/ports", " ".join(change.ports()) + "\n")
            archive_add(archive, "next/was_down",
                        "".join(p + "\n" for p in change.node.was_down))
            archive_add(archive, "next/want", "".join("%s %d %s\n" % w for w in change.want))
            archive_add(archive, "next/drop", "".join("%s %s\n" % d for d in change.drop))
            archive_add(archive, "next/write", "".join(p + "\n" for p in sorted(change.write)))
            archive_add(archive, "next/remove", "".join(p + "\n" for p in change.remove))
            for path, (text, mode) in change.write.items():
                archive_add(archive, "next/tree" + path, text, mode)
    return base64.encodebytes(buffer.getvalue()).decode().strip()


class Transaction:
    """A change of several nodes."""

    def __init__(self, nodes, seconds, changes=None):
        """@changes: {node name: Change} for `up`, None for `down`."""
        self.nodes, self.seconds, self.changes = nodes, seconds, changes
        self.id = secrets.token_hex(8)
        self.problems = []   # in words
        self.unreachable = []
        self.kept = []       # nodes that have confirmed

    def _begin(self, node):
        change = self.changes[node.name] if self.changes else None
        commands = script(BEGIN, STATE, payload(change), "apply" if change else "down", self.id,
                          self.seconds)
        done = node.run(commands, as_root=True, timeout=self.seconds + 75,
                        note="(applies the change with %s; %s/node.sh)" % (node.tool, STATE))
        said = done.out.strip().splitlines()[-1:] or [""]
        if done.status == 0 and said[0] in ("applied", "nothing to undo"):
            return said[0]
        if done.status == 255:
            self.unreachable.append(node)
            self.problems.append("%s: not reachable after the change: %s" %
                                 (node.name, done.complaint()))
        else:
            self.problems.append("%s: %s" % (node.name, shorten(said[0]) or done.complaint()))
        return None

    def _verb(self, node, verb):
        return node.run(script("sh %s/node.sh %s %s\n", STATE, verb, self.id), as_root=True,
                        timeout=60)

    def _reach(self, node):
        done = node.run(script("echo here\n"), timeout=self.seconds)
        if done.status or "here" not in done.out:
            self.unreachable.append(node)
            self.problems.append("%s: not reachable after the change: %s" %
                                 (node.name, done.complaint()))

    def _cancel(self, nodes):
        """Takes the change back where it was made; an unreachable node does so by itself."""
        def one(node):
            done = self._verb(node, "cancel")
            if done.status == 255 and node not in self.unreachable:
                self.unreachable.append(node)
            elif "; but " in done.out:
                self.problems.append("%s: %s" % (node.name, shorten(done.out.strip())))
        on_all([node for node in nodes if node not in self.unreachable], one)

    def run(self):
        """Returns True if all nodes have made the change and keep it; else all are as before."""
        answers = dict(zip(self.nodes, on_all(self.nodes, self._begin)))
        begun = [node for node in self.nodes if answers[node] == "applied"]
        if not self.problems:
            on_all(begun, self._reach)
        if self.problems:
            self._cancel(begun)
            return False

        def confirm(node):
            done = self._verb(node, "confirm")
            if done.status == 0 and done.out.strip() in ("kept", "restored"):
                self.kept.append(node)
            else:
                self.problems.append("%s: the change was not kept: %s" %
                                     (node.name, done.complaint()))
        on_all(begun, confirm)
        return not self.problems

    def await_return(self, report):
        """Waits until nodes that were unreachable have taken the change back, and answer again."""
        waiting, deadline = list(self.unreachable), time.monotonic() + self.seconds + 60
        while waiting and time.monotonic() < deadline:
            for node in list(waiting):
                done = node.run(script("cat %s/result 2>/dev/null; true\n", STATE), as_root=True,
                                timeout=15)
                if done.status != 255 and not done.out.startswith("applied"):
                    report("%s answers again: %s" %
                           (node.name, shorten(done.out.strip()) or "as before"))
                    waiting.remove(node)
            if waiting:
                time.sleep(1)
        return waiting
