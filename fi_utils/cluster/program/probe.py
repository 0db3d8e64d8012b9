# SPDX-License-Identifier: Apache-2.0
"""
probe.py - which ports hear each other where `fi_mesh neighbours` has heard nothing: a question to
all nodes of a link, and who answers.
"""
import answer
from remote import on_all, script

# ff02::1: all nodes of the link. They answer with their link-local address; the kernel's table of
# neighbours has the MAC address that belongs to it.
PROBE = r"""
command -v ping >/dev/null || { echo 'ping is missing' >&2; exit 1; }
for nic in %s; do
	ping -6 -n -c 3 -i 0.3 -W 1 "ff02::1%%$nic" 2>/dev/null |
		sed -n 's/^[0-9]* bytes from \([0-9a-f:]*\).*/\1/p' | sort -u |
		while read -r address; do echo "answer $nic $address"; done &
done
wait
echo neighbours
ip -6 -j neigh show
"""


TABLE = answer.many(answer.record(dev=answer.interface, dst=answer.address,
                                  lladdr=answer.maybe(answer.text)))


def answers_of(node, text):
    """{nic: [(address, MAC or None)]} of the output of a probe."""
    head, _, table = text.partition("neighbours\n")
    macs = {(entry["dev"], entry["dst"]): entry["lladdr"]
            for entry in answer.document(node, "`ip -6 -j neigh`", table or "[]", TABLE)}
    answers = {}
    for line in head.splitlines():
        word, nic, sender = (line.split() + ["", "", ""])[:3]
        if word == "answer":
            nic = answer.wanted(node, "ping", answer.interface, nic)
            sender = answer.wanted(node, "ping", answer.address, sender)
            mac = macs.get((nic, sender))
            answers.setdefault(nic, []).append((str(sender), mac.lower() if mac else None))
    return answers


def hear(nodes, answers):
    """
    Turns addresses into ports.

    @nodes: list with .name and .nics; @answers: {node name: answers_of()}

    Returns ({port: set of ports}, {port: set of texts of what is no port of these nodes}).
    """
    by_mac, by_address = {}, {}
    for node in nodes:
        for nic in node.nics.values():
            by_mac[nic.mac] = (node.name, nic.name)
            for address in nic.link_local():
                by_address.setdefault(address, []).append((node.name, nic.name))
    heard, strangers = {}, {}
    for node in nodes:
        for nic, found in answers.get(node.name, {}).items():
            port = (node.name, nic)
            if nic not in node.nics:
                continue
            for address, mac in found:
                if address in node.nics[nic].link_local():
                    continue
                other = by_mac.get(mac) if mac else None
                if not other and len(by_address.get(address, ())) == 1:
                    other = by_address[address][0]
                if other:
                    heard.setdefault(port, set()).add(other)
                else:
                    strangers.setdefault(port, set()).add(mac or address)
    return heard, strangers


def probe(nodes, wanted):
    """
    Asks all nodes at once. @wanted: {node name: NICs to ask on}

    Returns what hear() returns, and problems in words.
    """
    problems = []

    def one(node):
        nics = wanted[node.name]
        if not nics:
            return {}
        done = node.run(script(PROBE, nics), note="(ping -6 ff02::1 on %s)" % ", ".join(nics))
        if done.status:
            problems.append("%s: %s" % (node.name, done.complaint()))
        return answers_of(node, done.out)

    answers = dict(zip([node.name for node in nodes], on_all(nodes, one)))
    heard, strangers = hear(nodes, answers)
    return heard, strangers, problems


def ports_silent(nodes, heard, strangers):
    """{node name: NICs with a link that have heard no node}"""
    return {node.name: [nic.name for nic in node.nics.values() if nic.up and nic.carrier and
                        not heard.get((node.name, nic.name)) and
                        not strangers.get((node.name, nic.name))] for node in nodes}


def probe_rest(nodes, heard, strangers):
    """
    Asks on the ports that have heard no node, and adds the answers: `fi_mesh neighbours` leaves out
    NICs that cannot carry the mesh, and only nodes with `fi_mesh` answer it. Returns problems.
    """
    wanted = ports_silent(nodes, heard, strangers)
    if not any(wanted.values()):
        return []
    more, others, problems = probe(nodes, wanted)
    for port, found in more.items():
        heard.setdefault(port, set()).update(found)
    for port, found in others.items():
        strangers.setdefault(port, set()).update(found)
    return problems
