# SPDX-License-Identifier: Apache-2.0
"""
wires.py - which port is cabled to which, and what is wrong with that. No I/O.

A port is (node name, NIC name). A wire is all ports that hear each other: two for a cable, four for
a cable of a DGX Spark, whose ports are two NICs each.
"""
import collections

Cable = collections.namedtuple("Cable", "a b")  # two ports
Fault = collections.namedtuple("Fault", "kind verdict text fix")
# "fail": the mesh is not complete; "warn": it works, or `up` sets it right.


class Wires:
    """The result: cables, and the groups that are none."""

    def __init__(self):
        self.cables = []    # Cable, a cable of two halves as two of them
        self.halves = {}    # Cable: how many cables its wire holds
        self.switches = []  # lists of ports
        self.half = []      # (port that hears, port that does not)


def groups_of(heard):
    """Ports that hear each other, in either direction; each list sorted."""
    near = collections.defaultdict(set)
    for port, others in heard.items():
        for other in others:
            near[port].add(other)
            near[other].add(port)
    seen, groups = set(), []
    for port in sorted(near):
        if port in seen:
            continue
        group, queue = set(), [port]
        while queue:
            at = queue.pop()
            if at not in group:
                group.add(at)
                queue.extend(near[at])
        seen |= group
        groups.append(sorted(group))
    return groups


def wires_of(heard, order):
    """
    @heard: {port: set of ports that answered it}; @order: names of the nodes
    """
    found = Wires()
    for group in groups_of(heard):
        by_node = collections.defaultdict(list)
        for port in group:
            by_node[port[0]].append(port)
        nodes = sorted(by_node, key=order.index)
        if len(nodes) == 1:
            continue  # two NICs of one node: a loop, or the halves of one port
        if len(nodes) > 2 or len(by_node[nodes[0]]) != len(by_node[nodes[1]]):
            found.switches.append(group)
            continue
        for a, b in zip(by_node[nodes[0]], by_node[nodes[1]]):
            cable = Cable(a, b)
            found.cables.append(cable)
            found.halves[cable] = len(by_node[nodes[0]])
            for hears, other in ((a, b), (b, a)):
                if other in heard.get(hears, ()) and hears not in heard.get(other, ()):
                    found.half.append((hears, other))
    return found


def port_text(port):
    """As in plans: NODE:NIC."""
    return "%s:%s" % port


def cable_text(cable):
    """Both ends."""
    return "%s - %s" % (port_text(cable.a), port_text(cable.b))


def speed_text(mbps):
    """As `fi_mesh nics` prints it."""
    return "%g Gb/s" % (mbps / 1000) if mbps >= 1000 else "%d Mb/s" % mbps


# --- what is wrong with each port and cable ---------------------------------------------------

def class_used(nodes, cables):
    """Whether the mesh runs on ports with RDMA: then others without a cable are not missed."""
    used = [port for cable in cables for port in cable]
    return any(nodes[node].nics[nic].rdma for node, nic in used)


def port_faults(nodes, heard, strangers, wires):
    """Ports that end no cable of the mesh. @strangers: {port: what else answered there}"""
    used = {port for cable in wires.cables for port in cable}
    used |= {port for group in wires.switches for port in group}
    with_rdma = class_used(nodes, wires.cables)
    for name, node in nodes.items():
        for nic in node.nics.values():
            port = (name, nic.name)
            if port in used or (with_rdma and not nic.rdma):
                continue
            text = port_text(port)
            if not nic.up:
                yield Fault("off", "fail", "%s is switched off" % text, "`fi_mesh up`, or by hand "
                            "on %s: ip link set dev %s up" % (name, nic.name))
            elif not nic.carrier:
                yield Fault("down", "fail", "%s has no link: nothing is plugged in, or the other "
                            "end is off" % text, "reseat the cable at both ends")
            elif strangers.get(port):
                yield Fault("stranger", "fail", "%s is cabled to none of these nodes: %s answers "
                            "there" % (text, ", ".join(sorted(strangers[port]))),
                            "move the cable, or name that node, too")
            elif heard.get(port):
                yield Fault("loop", "fail", "%s is cabled to the same node, %s" %
                            (text, ", ".join(port_text(p) for p in sorted(heard[port]))),
                            "move one end to another node")
            elif not nic.link_local():
                yield Fault("silent", "warn", "%s has a link, but no link-local IPv6 address: the "
                            "other end cannot be found" % text,
                            "`fi_mesh up` without --dry-run, unless IPv6 is switched off there; "
                            "or name the cables: --cables FILE")
            else:
                yield Fault("silent", "fail", "%s has a link, and no node answers there: it is "
                            "cabled to another machine, or a firewall drops ICMPv6" % text,
                            "follow the cable; or name the cables: --cables FILE")


def cable_faults(nodes, wires):
    """Cables that work, but not as they should."""
    speeds = {}
    for cable in wires.cables:
        ends = [nodes[node].nics[nic] for node, nic in cable]
        if ends[0].mtu != ends[1].mtu:
            yield Fault("mtu", "warn", "%s: the ends have different MTUs, %d and %d" %
                        (cable_text(cable), ends[0].mtu, ends[1].mtu),
                        "`fi_mesh up` sets both")
        if ends[0].speed and ends[1].speed and ends[0].speed != ends[1].speed:
            yield Fault("slow", "warn", "%s: the ends report different rates, %s and %s" %
                        (cable_text(cable), speed_text(ends[0].speed), speed_text(ends[1].speed)),
                        "reseat the cable, or replace it")
        if ends[0].speed and ends[1].speed:
            speeds[cable] = min(end.speed for end in ends)
    best = max(speeds.values(), default=0)
    for cable, speed in speeds.items():
        if speed < best:
            yield Fault("slow", "warn", "%s: %s, and other cables of this mesh have %s" %
                        (cable_text(cable), speed_text(speed), speed_text(best)),
                        "reseat the cable; swap it with another one to see which part is faulty")
    for hears, other in wires.half:
        if not nodes[other[0]].nics[other[1]].link_local():
            yield Fault("half", "fail", "%s has no link-local IPv6 address, and %s has one" %
                        (port_text(other), port_text(hears)),
                        "`fi_mesh up` without --dry-run, unless IPv6 is switched off there: on %s: "
                        "sysctl net.ipv6.conf.%s.{disable_ipv6,addr_gen_mode}" % other)
            continue
        yield Fault("half", "fail", "%s - %s is half-connected: %s gets answers, %s gets none" %
                    (port_text(hears), port_text(other), port_text(hears), port_text(other)),
                    "reseat the cable at both ends; look for a firewall on %s" % hears[0])
    for group in wires.switches:
        yield Fault("switch", "warn", "%s reach each other: a switch, which needs one subnet for "
                    "all of them and is left as it is" %
                    ", ".join(port_text(port) for port in group), None)


# --- what is wrong with the whole -------------------------------------------------------------

def pairs_of(cables):
    """{(node, node): its cables}"""
    pairs = collections.defaultdict(list)
    for cable in cables:
        pairs[tuple(sorted((cable.a[0], cable.b[0])))].append(cable)
    return pairs


def connected(order, pairs):
    """The nodes that cables join to the first one."""
    seen, queue = set(), [order[0]]
    while queue:
        at = queue.pop()
        if at not in seen:
            seen.add(at)
            queue.extend(b if a == at else a for a, b in pairs if at in (a, b))
    return seen


def ports_of_each(nodes, wires):
    """How many cables every node can take."""
    with_rdma = class_used(nodes, wires.cables)
    halves = max(wires.halves.values(), default=1)
    return min(len([nic for nic in node.nics.values() if nic.rdma or not with_rdma])
               for node in nodes.values()) // halves


def expected_shape(nodes, wires):
    """full where every node has a port for each other one, else ring, else None."""
    ports = ports_of_each(nodes, wires)
    if ports >= len(nodes) - 1:
        return "full"
    return "ring" if ports >= 2 else None


def missing_pairs(order, pairs, shape):
    """Pairs of nodes that have no cable and should."""
    if shape == "full":
        return [(a, b) for i, a in enumerate(order) for b in order[i + 1:]
                if tuple(sorted((a, b))) not in pairs]
    return []


def neighbours_of(order, pairs):
    """{node: nodes with a cable to it}"""
    return {node: {b if a == node else a for a, b in pairs if node in (a, b)} for node in order}


def shape_faults(nodes, wires, shape):
    """Pairs without a cable, and cables that should join other pairs."""
    order = list(nodes)
    pairs = pairs_of(wires.cables)
    missing = missing_pairs(order, pairs, shape)
    usual = max(ports_of_each(nodes, wires) // max(len(order) - 1, 1), 1)
    for (a, b), found in sorted(pairs.items()):
        # Halves of one cable are no second cable.
        extra = len(found) // wires.halves[found[0]] > usual
        wrong = [pair for pair in missing if set(pair) & {a, b}]
        if extra and wrong:
            yield Fault("miswired", "fail", "%s and %s have %d cables (%s), and %s have none: one "
                        "of these cables joins the wrong nodes" %
                        (a, b, len(found), "; ".join(cable_text(c) for c in found),
                         " and ".join(wrong[0])),
                        "move one end of one from %s to %s" %
                        (({a, b} - set(wrong[0])).pop(), (set(wrong[0]) - {a, b}).pop()))
    for a, b in missing:
        yield Fault("missing", "fail", "no cable joins %s and %s" % (a, b),
                    "connect a free port of each")
    if shape == "ring" and len(order) > 2:
        for node, others in neighbours_of(order, pairs).items():
            if len(others) < 2:
                yield Fault("missing", "fail", "%s has a cable to %s only: the ring is open" %
                            (node, ", ".join(sorted(others)) or "no node"),
                            "connect it to a second node")
    reached = connected(order, pairs)
    if len(reached) < len(order) and not missing:
        yield Fault("missing", "fail", "no cable joins %s to %s" %
                    (", ".join(n for n in order if n in reached),
                     ", ".join(n for n in order if n not in reached)),
                    "connect a free port of each")


def faults_of(nodes, heard, strangers, wires, shape=None):
    """
    All faults, the worst first.

    @nodes: {name: node with nics}; @shape: "full", "ring" or None; "" lets the ports decide
    """
    if shape == "":
        shape = expected_shape(nodes, wires)
    found = (list(shape_faults(nodes, wires, shape)) +
             list(port_faults(nodes, heard, strangers, wires)) + list(cable_faults(nodes, wires)))
    return sorted(found, key=lambda fault: fault.verdict != "fail")
