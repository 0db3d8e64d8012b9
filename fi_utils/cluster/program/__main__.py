# SPDX-License-Identifier: Apache-2.0
"""
fi_mesh up, fi_mesh down, fi_mesh check --all: a whole mesh from one machine, over ssh.

`fi_mesh` starts this program: python3 FOLDER PATH-OF-FI_MESH COMMAND ARGUMENT...
"""
import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

# pylint: disable=wrong-import-position
import answer
import apply
import install
import look
import neighbours
import plan as planning
import probe
import report
import verify
import wires as wiring
from remote import Failure, Node, on_all, shorten

# Beside this file in the build folder and where it is installed.
ALL_REDUCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "all_reduce.py")
PINGPONG = ["--timeout", 60, "--sizes", "8,64K,4M", "--repeat", 3]
EPILOG = "Exit status: 0 all is well, 1 a problem was found, 2 usage error."


def options_of(command, arguments):
    """Parses the command line; exits with 2 where it is wrong."""
    about = {
        "up": "Finds the cables between the hosts, plans addresses, configures every host and "
              "checks all links. Hosts are what ssh takes.",
        "down": "Undoes on every host what `fi_mesh up` has changed.",
        "check": "Checks every host, every cable between them and every link, and changes "
                 "nothing.",
    }[command]
    parser = argparse.ArgumentParser(
        prog="fi_mesh " + command, description=about, epilog=EPILOG,
        usage="fi_mesh %s [OPTION...] HOST HOST..." %
        ("check --all" if command == "check" else command))
    parser.add_argument("hosts", metavar="HOST", nargs="+", help=argparse.SUPPRESS)
    add = parser.add_argument
    if command == "check":
        add("--all", action="store_true", help="all of these hosts, over ssh")
    else:
        add("-n", "--dry-run", action="store_true", help="show all, change nothing")
        add("-y", "--yes", action="store_true", help="do not ask")
        add("--rollback-after", metavar="SECONDS", type=int, default=60,
            help="a node reverts its change unless it is confirmed within this time (60)")
    add("--json", action="store_true", help="JSON instead of text")
    add("-v", "--verbose", action="store_true", help="show each remote command")
    add("--ssh", metavar="COMMAND", default="ssh", help="ssh, with your own options (ssh)")
    add("--connect-timeout", metavar="SECONDS", type=int, default=10,
        help="how long ssh tries to reach a host (10)")
    add("--bin", metavar="FOLDER", help="where fi_mesh is on the hosts, if not in PATH")
    if command != "down":
        add("--ports", metavar="LIST", action="append", default=[],
            help="the NICs that end cables: p0,p1 on all hosts, or HOST=p0,p1")
        add("--cables", metavar="FILE",
            help="lines HOST:PORT HOST:PORT, instead of looking for the cables")
        add("--shape", choices=("full", "ring", "any"),
            help="what the cables should be; by default the number of ports decides")
        add("--port", metavar="PORT", type=int, default=18620, help="of `fi_mesh serve` (18620)")
    if command == "up":
        add("--range", metavar="ADDR/N", help="as of `fi_mesh plan`")
        add("--mtu", metavar="BYTES", type=int, help="of all cables (9000; IPoIB 2044)")
        add("--partial", action="store_true", help="configure what works despite faults")
        add("--master-port", metavar="PORT", type=int, default=29500,
            help="where the ranks of fabric_pingpong and NCCL meet (29500)")
        add("--install", metavar="PACKAGE", help="a .deb or .rpm to install on all hosts first")
    options = parser.parse_args(arguments)
    names = [Node(host, options).name for host in options.hosts]
    if len(set(names)) < len(names):
        parser.error("a host is named twice")
    if len(names) < 2 and command != "down":
        parser.error("name two hosts or more")
    if any(host.startswith("-") or not name for host, name in zip(options.hosts, names)):
        parser.error("a host is what ssh takes: USER@NAME, NAME or an address")
    if command != "check" and options.json and not (options.yes or options.dry_run):
        parser.error("--json needs --yes or --dry-run")
    if command != "check" and not 5 <= options.rollback_after <= 3600:
        parser.error("--rollback-after takes 5 to 3600 seconds")
    return options


class Command:
    """What the three commands have in common."""

    def __init__(self, name, options, fi_mesh):
        self.name, self.options = name, options
        options.fi_mesh = fi_mesh
        self.nodes = [Node(host, options) for host in options.hosts]
        self.by_name = {node.name: node for node in self.nodes}
        self.document = report.Document(name)

    def say(self, text=""):
        """Text for people; with --json nothing."""
        if not self.options.json:
            print(text, flush=True)

    def progress(self, text):
        """What is done next, which may take some time; with --json nothing."""
        if not self.options.json:
            print("fi_mesh %s: %s ..." % (self.name, text), file=sys.stderr, flush=True)

    def ask(self, question):
        """True for yes. Without a terminal, --yes has to say so."""
        if self.options.yes:
            return True
        if self.options.dry_run:
            return False
        if not sys.stdin.isatty():
            raise Failure("%s Standard input is not a terminal: use --yes or --dry-run." % question)
        print("%s [y/N] " % question, end="", flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def ports_wake(self):
        """Ports that are switched off have no carrier: nothing is found behind them."""
        off = {node: look.ports_off(node) for node in self.nodes if look.ports_off(node)}
        if not off:
            return
        names = ", ".join("%s:%s" % (node.name, nic) for node, nics in off.items()
                          for nic in nics)
        if not self.ask("%s: switched off. Set them up to look for their cables?" % names):
            return
        on_all(list(off), lambda node: look.ports_on(node, off[node]))
        look.look_at_all(self.nodes)
        look.ports_restrict(self.nodes, self.options.ports)

    def cables_find(self):
        """Returns (wires, faults)."""
        self.progress("looking for the cables")
        if self.options.cables:
            wires, heard, strangers = cables_read(self.options.cables, self.by_name), {}, {}
        else:
            heard, strangers = neighbours.ask(self.nodes, self.options.port)
            problems = probe.probe_rest(self.nodes, heard, strangers)
            if problems:
                raise Failure("\n".join(problems))
            wires = wiring.wires_of(heard, list(self.by_name))
        shape = {None: "", "any": None}.get(self.options.shape, self.options.shape)
        faults = wiring.faults_of(self.by_name, heard, strangers, wires, shape)
        self.document.nodes(self.nodes)
        self.document.wires(wires, faults)
        self.say(report.cables_text(self.by_name, wires) if wires.cables
                 else "No cable was found between these nodes.\n")
        if faults:
            self.say(report.faults_text(faults))
        return wires, faults

    def links_check(self, ends):
        """True if no link has a fault."""
        self.progress("checking each cable")
        found = verify.check_links(self.nodes, ends, self.options.port)
        self.document.root["links"] = found
        self.say(report.links_text(found))
        return not any(finding["verdict"] in ("warn", "fail")
                       for _, _, finding in verify.findings_of(found))

    def finish(self, status):
        """Prints the JSON; returns the exit status."""
        if self.options.json:
            self.document.root["status"] = status
            self.document.print()
        return status


def cables_read(path, nodes):
    """--cables FILE: lines HOST:PORT HOST:PORT."""
    wires = wiring.Wires()
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.partition("#")[0].split() for line in file]
    except (OSError, ValueError) as error:
        raise Failure("cannot read %s: %s" % (path, getattr(error, "strerror", error)))
    for number, words in enumerate(lines, 1):
        if not words:
            continue
        ports = [tuple(word.split("=")[0].rpartition(":")[::2]) for word in words]
        if len(ports) != 2 or ports[0][0] == ports[1][0]:
            raise Failure("%s, line %d: write a cable as HOST:PORT HOST:PORT" % (path, number))
        for node, nic in ports:
            if node not in nodes or nic not in nodes[node].nics:
                raise Failure("%s, line %d: there is no %s among these hosts" %
                              (path, number, shorten(wiring.port_text((node, nic)))))
        wires.cables.append(wiring.Cable(*ports))
        wires.halves[wires.cables[-1]] = 1
    return wires


# --- up ---------------------------------------------------------------------------------------

def plan_and_changes(command, wires):
    """Returns (Plan, {node: Change})."""
    on_all(command.nodes, look.own_files)
    plan = planning.Plan(command.options, command.by_name, wires)
    changes = planning.changes_make(plan)
    on_all(list(changes.values()), planning.contents_read)
    command.document.changes(plan, changes)
    command.say(report.plan_text(plan))
    for change in changes.values():
        command.say(report.change_text(change))
    return plan, changes


def apply_changes(command, changes):
    """True if all nodes have made their change."""
    needed = {name: change for name, change in changes.items() if not change.is_empty()}
    if not needed:
        return True
    nodes = [command.by_name[name] for name in needed]
    transaction = apply.Transaction(nodes, command.options.rollback_after, needed)
    if transaction_run(command, transaction):
        for node in nodes:
            node.was_down = []
        command.document.root["applied"] = True
        command.say("Applied on %s.\n" % ", ".join(needed))
        return True
    transaction_failed(command, transaction)
    return False


def transaction_run(command, transaction):
    """As transaction.run(); says what happens after Ctrl-C."""
    began = time.monotonic()
    command.progress("changing %s" % ", ".join(node.name for node in transaction.nodes))
    try:
        return transaction.run()
    except KeyboardInterrupt:
        print("fi_mesh %s: hosts that have begun will revert the change themselves within %d s" %
              (command.name, max(0, began + transaction.seconds - time.monotonic())),
              file=sys.stderr)
        raise


def transaction_failed(command, transaction):
    """Says why nothing has changed, and waits for nodes that take their change back alone."""
    command.document.root["problems"] += transaction.problems
    for problem in transaction.problems:
        print("fi_mesh %s: %s" % (command.name, problem), file=sys.stderr)
    if transaction.kept:
        print("fi_mesh %s: the change stays on %s: repeat the command" %
              (command.name, ", ".join(node.name for node in transaction.kept)), file=sys.stderr)
    else:
        print("fi_mesh %s: the change was reverted on all nodes%s" % (command.name, ", but see "
              "above" if any("; but " in problem for problem in transaction.problems) else ""),
              file=sys.stderr)
    if not transaction.unreachable:
        return
    print("fi_mesh %s: %s: the node reverts its change itself after %d s; waiting for it" %
          (command.name, ", ".join(n.name for n in transaction.unreachable),
           transaction.seconds), file=sys.stderr)
    for node in transaction.await_return(command.say):
        print("fi_mesh %s: %s does not answer: look at its console" %
              (command.name, node.name), file=sys.stderr)


def pingpong_run(command, plan):
    """The table over all nodes, those that need a relay included; True if every pair is ok."""
    command.progress("running fabric_pingpong on all hosts")
    arguments = PINGPONG + (["--json"] if command.options.json else [])
    fine, output, errors = verify.pingpong(command.nodes, plan.json["ranks"],
                                              command.options.master_port, arguments)
    if command.options.json:
        node = command.by_name[plan.json["ranks"][0]]
        command.document.root["pingpong"] = answer.document(
            node, "fabric_pingpong", output, answer.record()) if output.startswith("{") else None
        fine = fine and output.startswith("{")
    command.say(output)
    for error in errors:
        print("fi_mesh up: fabric_pingpong: %s" % error, file=sys.stderr)
    return fine


def nccl_run(command, plan):
    """NCCL itself, where PyTorch finds a GPU on all hosts; False if it fails."""
    command.progress("looking for PyTorch with a GPU on all hosts")
    missing = verify.without_gpu(command.nodes)
    if missing:
        command.say("NCCL itself was not run: no PyTorch with a GPU on %s." % ", ".join(missing))
        return True
    command.progress("running NCCL (examples/all_reduce.py) on all hosts")
    fine, output, errors = verify.all_reduce(command.nodes, plan.json["ranks"],
                                             command.options.master_port,
                                             plan.json["environment"], ALL_REDUCE)
    command.document.root["nccl"] = fine
    command.say(output)
    for error in errors:
        print("fi_mesh up: NCCL: %s" % error, file=sys.stderr)
    return fine


def up_run(command):
    """Returns an exit status."""
    options = command.options
    command.ports_wake()
    if not options.dry_run:
        on_all(command.nodes, look.link_local_lend)
    wires, faults = command.cables_find()
    on_all(command.nodes, look.link_local_return)
    bad = [fault for fault in faults if fault.verdict == "fail"]
    if not wires.cables or (bad and not options.partial and not options.dry_run):
        print("fi_mesh up: nothing was changed: repair the cables%s" %
              (", or configure those that work with --partial" if wires.cables else ""),
              file=sys.stderr)
        return 1
    reached = wiring.connected(list(command.by_name), wiring.pairs_of(wires.cables))
    if len(reached) < len(command.nodes):
        print("fi_mesh up: nothing was changed: the cables do not join all of these nodes",
              file=sys.stderr)
        return 1
    plan, changes = plan_and_changes(command, wires)
    if options.dry_run:
        return 1 if bad else 0
    if not all(change.is_empty() for change in changes.values()):
        if not command.ask("Apply this?"):
            return 1
        if not apply_changes(command, changes):
            return 1
    addresses = {(node, port): address for node, port, address in plan.ends()}
    ends = [tuple((port[0], str(addresses[port].ip)) for port in cable) for cable in wires.cables]
    good = command.links_check(ends)
    good = pingpong_run(command, plan) and good
    good = good and nccl_run(command, plan)
    if good:
        command.say(report.start_text(plan, command.by_name))
    return 0 if good and not bad else 1


def nodes_look(command):
    """Looks at all nodes, after changes that were not finished are taken back."""
    command.progress("looking at %s" % ", ".join(node.name for node in command.nodes))
    look.look_at_all(command.nodes)
    if command.name == "check" or command.options.dry_run:
        return
    undone = on_all(command.nodes, look.leftover_undo)
    for node, words in zip(command.nodes, undone):
        if words:
            command.say("%s: an unfinished change is %s" % (node.name, shorten(words)))
    if any(undone):
        look.look_at_all(command.nodes)


def up(command):
    """fi_mesh up"""
    if command.options.install and not command.options.dry_run:
        command.progress("installing %s on all hosts" % command.options.install)
        install.install(command.nodes, command.options.install)
    nodes_look(command)
    look.ports_restrict(command.nodes, command.options.ports)
    try:
        return up_run(command)
    finally:
        on_all(command.nodes, look.link_local_return)
        on_all(command.nodes, look.ports_off_again)


# --- down, check --all ------------------------------------------------------------------------

def down(command):
    """fi_mesh down"""
    nodes_look(command)
    on_all(command.nodes, look.own_files)
    nodes = [node for node in command.nodes if node.files or node.own_ports]
    for node in command.nodes:
        command.say("%s: %s" % (node.name, ", ".join(node.files) or
                                ("addresses of " + ", ".join(sorted(node.own_ports))
                                 if node.own_ports else "nothing to undo")))
    command.document.nodes(command.nodes)
    if not nodes or command.options.dry_run:
        return 0
    if not command.ask("Undo this?"):
        return 1
    transaction = apply.Transaction(nodes, command.options.rollback_after)
    if transaction_run(command, transaction):
        command.document.root["applied"] = True
        command.say("As before `fi_mesh up`: %s." % ", ".join(node.name for node in nodes))
        return 0
    transaction_failed(command, transaction)
    return 1


def check(command):
    """fi_mesh check --all"""
    command.options.yes, command.options.dry_run = False, True
    look.look_at_all(command.nodes)
    look.ports_restrict(command.nodes, command.options.ports)
    wires, faults = command.cables_find()
    found = verify.check_nodes(command.nodes)
    command.document.root["checks"] = found
    command.say(report.nodes_text(found))
    right = {cable: planning.right_addresses(command.by_name, cable) for cable in wires.cables}
    ends = [((cable.a[0], str(pair[0].ip)), (cable.b[0], str(pair[1].ip)))
            for cable, pair in right.items() if pair]
    for cable, pair in right.items():
        if not pair:
            command.say("%-8s %s: no subnet of its own: `fi_mesh up` plans one\n" %
                        ("fail", wiring.cable_text(cable)))
    good = all(right.values()) and not faults
    good = not any(report["warn"] or report["fail"] for report in found.values()) and good
    if ends:
        good = command.links_check(ends) and good
    return 0 if good else 1


def main():
    """Returns an exit status."""
    fi_mesh, name, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    options = options_of(name, arguments)
    command = Command(name, options, fi_mesh)
    try:
        return command.finish({"up": up, "down": down, "check": check}[name](command))
    except Failure as failure:
        for line in str(failure).splitlines():
            print("fi_mesh %s: %s" % (name, line), file=sys.stderr)
        command.document.root["problems"] += str(failure).splitlines()
        return command.finish(1)
    except KeyboardInterrupt:
        print("fi_mesh %s: interrupted" % name, file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
