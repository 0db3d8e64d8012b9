# SPDX-License-Identifier: Apache-2.0
"""
neighbours.py - which ports hear each other, as `fi_mesh neighbours` on each node reports it while
`fi_mesh serve` runs on all of them. It names the node behind a cable also where that is none of
these, and needs no ping.
"""
import answer
from remote import on_all, script
from verify import Serving

NEIGHBOUR = answer.record(node=answer.maybe(answer.text), node_id=answer.maybe(answer.node_id),
                          netdev=answer.maybe(answer.text))
REPORT = answer.record(node_id=answer.node_id, nics=answer.many(answer.record(
    netdev=answer.interface, neighbours=answer.many(NEIGHBOUR))))


def report_of(node, done):
    """The JSON of `fi_mesh neighbours`; None: it is too old for that, or no NIC can ask."""
    if not done.out.startswith("{"):
        return None
    return answer.document(node, "`fi_mesh neighbours --json`", done.out, REPORT)


def other_text(neighbour):
    """A node that is none of these."""
    netdev = neighbour.get("netdev")
    return "node %s%s" % (neighbour.get("node") or "?", " (%s)" % netdev if netdev else "")


def hear(nodes, reports):
    """
    @nodes: list with .name and .nics; @reports: {node name: what report_of() returns}

    Returns ({port: set of ports}, {port: set of texts of what is no port of these nodes}).
    """
    by_id = {}
    for name, found in reports.items():
        if found:
            by_id.setdefault(found["node_id"], []).append(name)
    nics = {node.name: node.nics for node in nodes}
    heard, strangers = {}, {}
    for name, found in reports.items():
        for nic in found["nics"] if found else []:
            port = (name, nic["netdev"])
            if nic["netdev"] not in nics[name]:
                continue
            for neighbour in nic["neighbours"]:
                names = by_id.get(neighbour["node_id"], [])
                other = (names[0], neighbour.get("netdev")) if len(names) == 1 else None
                if other == port:
                    continue
                if other and other[1] in nics[other[0]]:
                    heard.setdefault(port, set()).add(other)
                elif not names:
                    strangers.setdefault(port, set()).add(other_text(neighbour))
    return heard, strangers


def ask(nodes, port):
    """Asks all nodes at once; returns what hear() returns."""
    def one(node):
        return report_of(node, node.run(script("fi_mesh neighbours --json\n")))

    with Serving(nodes, port):
        reports = dict(zip([node.name for node in nodes], on_all(nodes, one)))
    return hear(nodes, reports)
