# SPDX-License-Identifier: Apache-2.0
"""remote.py - runs shell scripts on the nodes, with the system's ssh."""
import base64
import concurrent.futures
import os
import re
import selectors
import shlex
import subprocess
import sys
import tempfile
import time

OUTPUT_MAX = 1 << 20  # bytes that a script may print, on both streams together
SHOWN_MAX = 200  # characters of a node's words in a message



class Failure(Exception):
    """Something that ends the command, in words for the user."""


def clean(text):
    """Replaces what is not printable ASCII, a tab or the end of a line: terminals interpret it."""
    return re.sub(r"[^\n\t -~]", "?", text.replace("\r\n", "\n"))


def clean_line(text):
    """As clean(), and all of it in one line."""
    return re.sub(r"[^ -~]", "?", text)


def shorten(line):
    """A line of foreign text, as long as a message can show it."""
    line = clean_line(line)
    return line if len(line) <= SHOWN_MAX else line[:SHOWN_MAX - 3] + "..."


class Script(str):
    """A shell script as script() has made it; nodes run nothing else."""


def quote(value):
    """@value as one word of a shell."""
    return shlex.quote(str(value))


def words_of(value):
    """What takes the place of a %s."""
    if isinstance(value, Script):
        return value
    return " ".join(map(quote, value)) if isinstance(value, list) else quote(value)


def script(template, *values):
    """
    A script: each %s of @template becomes one quoted word, or one for each entry of a list. A
    Script is inserted as it is.
    """
    return Script(template % tuple(map(words_of, values)))


FILE = """
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder"
file=$folder/%s
echo %s | base64 -d >"$file" || exit 1
%s"""


def with_file(path, commands):
    """The Script @commands, for which $file is a copy of the file @path of this machine."""
    try:
        with open(path, "rb") as file:
            data = base64.encodebytes(file.read()).decode()
    except OSError as error:
        raise Failure("cannot read %s: %s" % (path, error.strerror))
    return script(FILE, os.path.basename(path), data, commands)


# Behind what the server gives: a session without login often lacks the folders of administrators.
PATH = script("PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C\n"
              "export PATH LC_ALL\n")


class Result:
    """What a script on a node printed, cleaned, and how it ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, clean(out), clean(err)

    def complaint(self):
        """The last line that is not empty, or the status."""
        lines = (self.err + "\n" + self.out).split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        return shorten(lines[-1]) if lines else "it ended with status %d" % self.status

    def login_complaint(self, node):
        """In words that @node cannot be reached."""
        why = self.complaint()
        fix = "; to log in with a key: ssh-copy-id %s" % node.destination
        return "%s: cannot log in: %s%s" % (node.name, why, fix if "denied" in why else "")


def output_read(process, seconds, first_line=False):
    """
    Reads both outputs of @process to their ends, or the standard output to the end of its first
    line. Returns both as text, and None or, in words, why there is not all of it.
    """
    found = {process.stdout: b"", process.stderr: b""}
    deadline, why = time.monotonic() + seconds, None
    with selectors.DefaultSelector() as selector:
        for stream in found:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() and not why:
            if first_line and b"\n" in found[process.stdout]:
                break
            for key, _ in selector.select(max(deadline - time.monotonic(), 0)):
                data = os.read(key.fd, 65536)
                found[key.fileobj] += data
                if not data:
                    selector.unregister(key.fileobj)
            if sum(map(len, found.values())) > OUTPUT_MAX:
                why = "it prints more than 1 MiB"
            elif time.monotonic() >= deadline:
                why = "no answer within %d s" % seconds
    return [text.decode(errors="replace") for text in found.values()] + [why]


def process_end(process, seconds=0):
    """Closes what a process is connected to, and waits for its end; kills it after @seconds."""
    for stream in process.stdin, process.stdout, process.stderr:
        try:
            if stream:
                stream.close()
        except OSError:
            pass
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def host_name(destination):
    """The node's name in tables and plans: the host as it was typed, without the user."""
    name = destination.rsplit("@", 1)[-1]
    return "".join(c if c < "\x7f" and (c.isalnum() or c in "._-") else "-"
                   for c in name).strip("-")


class Node:
    """One host, as ssh reaches it."""

    def __init__(self, destination, options):
        self.destination, self.options = destination, options
        self.name = host_name(destination)
        self.root = False  # look() knows better
        self.was_down = []  # NICs that were set up to look for their cables
        self.lent = []  # (NIC, address) that it has for that time
        self.left_out = set()  # NICs that --ports does not name

    def _command(self, as_root):
        remote = "sh -s" if self.root or not as_root else "sudo -n sh -s"
        return shlex.split(self.options.ssh) + [
            "-o", "BatchMode=yes", "-o", "ConnectTimeout=%d" % self.options.connect_timeout,
            "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
            "-o", "ControlPath=none", "--", self.destination, remote]

    def _show(self, command, commands, note):
        if not self.options.verbose:
            return
        shown = "".join("    %s\n" % line for line in (note or commands).strip().splitlines())
        sys.stderr.write("%s\n%s" % (words_of(command), shown))
        sys.stderr.flush()

    def whole(self, commands):
        """A Script, behind the lines that every script begins with."""
        if not isinstance(commands, Script):
            raise TypeError("not from script(): %r" % commands)
        if not self.options.bin:
            return PATH + commands
        return script("PATH=%s:$PATH\n%s", self.options.bin, PATH) + commands

    @staticmethod
    def _start(command, stdin):
        try:
            return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE)
        except OSError as error:
            raise Failure("cannot run %s: %s" % (command[0], error.strerror))

    def run(self, commands, as_root=False, timeout=60, note=None):
        """
        Runs a Script; returns a Result. Status 255 is ssh's own: the node is not reachable.
        @timeout: seconds from the login on, which has --connect-timeout. @note: what --verbose
        shows instead of a long script.
        """
        command = self._command(as_root)
        self._show(command, commands, note)
        with tempfile.TemporaryFile() as file:
            file.write(self.whole(commands).encode())
            file.seek(0)
            process = self._start(command, file)
        out, err, why = output_read(process, self.options.connect_timeout + timeout)
        status = process_end(process, 0 if why else 10)
        return Result(255, "", why) if why else Result(status, out, err)

    def start(self, commands, note=None):
        """Starts a Script that runs until its standard input ends; returns the process."""
        command = self._command(False)
        self._show(command, commands, note)
        # The script reads its own end, so it is an argument here and not the input.
        command[-1] = script("sh -c %s", str(self.whole(commands)))
        return self._start(command, subprocess.PIPE)


def on_all(nodes, function):
    """Calls function(node) for all nodes beside each other; returns the results in their order."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(len(nodes), 1)) as pool:
        return list(pool.map(function, nodes))
