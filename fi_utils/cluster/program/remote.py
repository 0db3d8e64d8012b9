# SPDX-License-Identifier: Apache-2.0
"""remote.py - runs shell scripts on the nodes, with the system's ssh."""
import concurrent.futures
import shlex
import subprocess
import sys



class Failure(Exception):
    """Something that ends the command, in words for the user."""


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


# Behind what the server gives: a session without login often lacks the folders of administrators.
PATH = script("PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin:/sbin LC_ALL=C\n"
              "export PATH LC_ALL\n")


class Result:
    """What a script on a node printed, and how it ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def complaint(self):
        """The last line that is not empty, or the status."""
        lines = [line.strip() for line in (self.err + "\n" + self.out).splitlines()]
        lines = [line for line in lines if line]
        return lines[-1] if lines else "it ended with status %d" % self.status


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

    def run(self, commands, as_root=False, timeout=60, note=None):
        """
        Runs a Script; returns a Result. Status 255 is ssh's own: the node is not reachable.
        @note: what --verbose shows instead of a long script.
        """
        command = self._command(as_root)
        self._show(command, commands, note)
        try:
            done = subprocess.run(command, input=self.whole(commands).encode(),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return Result(255, "", "no answer within %d s" % timeout)
        except OSError as error:
            raise Failure("cannot run %s: %s" % (command[0], error.strerror))
        return Result(done.returncode, done.stdout.decode(errors="replace"),
                      done.stderr.decode(errors="replace"))

    def start(self, commands, note=None):
        """Starts a Script that runs until its standard input ends; returns the process."""
        command = self._command(False)
        self._show(command, commands, note)
        # The script reads its own end, so it is an argument here and not the input.
        command[-1] = script("sh -c %s", str(self.whole(commands)))
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE)


def on_all(nodes, function):
    """Calls function(node) for all nodes beside each other; returns the results in their order."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(len(nodes), 1)) as pool:
        return list(pool.map(function, nodes))
