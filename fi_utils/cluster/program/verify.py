# SPDX-License-Identifier: Apache-2.0
"""verify.py - checks each link end to end, and drives the plugin and NCCL over all nodes."""
import sys

import answer
from remote import Failure, Result, on_all, output_read, process_end, script, with_file

# Runs until its input ends: then the connection is closed, or this command has ended.
SERVE = """
fi_mesh serve --port %s 2>&1 &
pid=$!
cat >/dev/null
kill $pid 2>/dev/null
wait $pid
"""

COUNT = answer.number(0, 1 << 32)
RATE = answer.maybe(answer.number(0, 1000000, (int, float)))
FINDING = answer.record(verdict=answer.one_of("pass", "unknown", "warn", "fail"),
                        text=answer.text, fix=answer.maybe(answer.text))
CHECK = answer.record(id=answer.text, title=answer.text, verdict=answer.text,
                      findings=answer.many(FINDING))
LINK = answer.record(nic=answer.interface, peer_nic=answer.text, provider=answer.text,
                     to_gbps=RATE, from_gbps=RATE)


def section(value):
    """What `fi_mesh check --peer` says of a peer; that of a link has its ends."""
    found = CHECK(value)
    return LINK(found) if found["id"] == "link" else found


NODE_CHECKS = answer.record(**{"pass": COUNT, "unknown": COUNT, "warn": COUNT, "fail": COUNT},
                            checks=answer.many(CHECK))
PEER_CHECKS = answer.record(peers=answer.many(answer.record(
    node=answer.maybe(answer.text), sections=answer.many(section))))


def checks_of(node, done, command, rule):
    """What a kind of `fi_mesh check` has printed there."""
    if not done.out.startswith("{"):
        raise Failure("%s: %s: %s" % (node.name, command, done.complaint()))
    return answer.document(node, command, done.out, rule)


class Serving:
    """`fi_mesh serve` on all nodes, as long as it is open."""

    def __init__(self, nodes, port):
        self.nodes, self.port, self.processes = nodes, port, []

    def __enter__(self):
        for node in self.nodes:
            self.processes.append(node.start(script(SERVE, self.port), "(fi_mesh serve)"))
        for node, process in zip(self.nodes, self.processes):
            out, err, why = output_read(process, 60, first_line=True)
            if why or not out:
                self.__exit__()
                raise Failure("%s: fi_mesh serve does not start: %s" %
                              (node.name, why or Result(process.returncode, "", err).complaint()))
        return self

    def __exit__(self, *_):
        on_all(self.processes, lambda process: process_end(process, 10))


def targets_of(order, ends):
    """
    {node: addresses to check from there}, each pair of nodes once.

    @ends: list of ((node, address), (node, address)) of the cables
    """
    targets = {name: {} for name in order}
    for (a, addr_a), (b, addr_b) in ends:
        first, other, address = ((a, b, addr_b) if order.index(a) < order.index(b)
                                 else (b, a, addr_a))
        targets[first].setdefault(other, address)
    return {name: list(found.values()) for name, found in targets.items() if found}


def check_links(nodes, ends, port):
    """`fi_mesh check --peer` for each pair of neighbours; returns {node: its JSON}."""
    by_name = {node.name: node for node in nodes}
    found = {}
    with Serving(nodes, port):
        # One after the other: two measurements at once would halve each other.
        for name, addresses in targets_of(list(by_name), ends).items():
            done = by_name[name].run(script("fi_mesh check --peer %s --port %s --json\n",
                                            addresses, port), timeout=120 * len(addresses))
            found[name] = checks_of(by_name[name], done, "fi_mesh check --peer", PEER_CHECKS)
    return found


def findings_of(found):
    """(node, title, finding) of all findings that are not "pass"."""
    for name, report in found.items():
        for peer in report["peers"]:
            for about in peer["sections"]:
                for finding in about["findings"]:
                    if finding["verdict"] != "pass":
                        yield name, about["title"], finding


def check_nodes(nodes):
    """`fi_mesh check` on each node; returns {node: its JSON}."""
    def one(node):
        done = node.run(script("fi_mesh check --json\n"), timeout=120)
        return checks_of(node, done, "fi_mesh check", NODE_CHECKS)
    return dict(zip([node.name for node in nodes], on_all(nodes, one)))


def ranks_run(nodes, order, port, commands):
    """
    A Script with a rank on each node: torchrun's variables are exported. Returns (all ended with 0,
    rank 0's output, errors).

    @order: names of the nodes by rank
    """
    by_name = {node.name: node for node in nodes}
    ranks = [by_name[name] for name in order]

    if not ranks[0].address:
        raise Failure("%s: ssh sets no $SSH_CONNECTION there, so the address at which the ranks "
                      "meet is not known" % order[0])

    def one(rank):
        # Rank 0 listens; the others try again until it does.
        return ranks[rank].run(
            script("export RANK=%s LOCAL_RANK=0 WORLD_SIZE=%s MASTER_ADDR=%s MASTER_PORT=%s\n%s",
                   rank, len(ranks), ranks[0].address, port, commands), timeout=900)

    results = on_all(range(len(ranks)), one)
    errors = ["%s: %s" % (node.name, result.complaint())
              for node, result in zip(ranks, results) if result.status]
    return not errors, results[0].out, errors


def pingpong(nodes, order, port, arguments):
    """fabric_pingpong on each node, with a list of arguments; returns what ranks_run() returns."""
    narrow = ["COLUMNS=80"] if sys.stdout.isatty() else []
    return ranks_run(nodes, order, port, script("env %s fabric_pingpong %s\n", narrow, arguments))


GPU = script("python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'\n")
ALL_REDUCE = script("python3 \"$file\" --max-mib 64\n")


def without_gpu(nodes):
    """The names of nodes on which PyTorch is missing, or finds no GPU."""
    found = on_all(nodes, lambda node: node.run(GPU, timeout=180))
    return [node.name for node, done in zip(nodes, found) if done.status]


def all_reduce(nodes, order, port, environment, path):
    """
    examples/all_reduce.py, PyTorch and NCCL, on each node; returns what ranks_run() returns.

    @environment: {name: value} of the plan; @path: of the example
    """
    variables = ["%s=%s" % pair for pair in environment.items()]
    commands = script("export %s\n%s", variables, with_file(path, ALL_REDUCE))
    return ranks_run(nodes, order, port, commands)
