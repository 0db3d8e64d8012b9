# SPDX-License-Identifier: Apache-2.0
"""look.py - what each node has: NICs, addresses, the tool that configures it, earlier changes."""
import ipaddress
import re

import answer
from remote import Failure, on_all, script, shorten

STATE = "/var/lib/nccl-net-mesh/up"

LOOK = script(r"""
part() { echo "@@@ $1"; }
part id; id -u
part connection; echo "$SSH_CONNECTION"
part fi_mesh; fi_mesh --version 2>&1
part nics; fi_mesh nics --json
part links; ip -j -d link show
part addresses; ip -j address show
part tool
if command -v netplan >/dev/null && ls /etc/netplan/*.yaml >/dev/null 2>&1; then echo netplan
elif command -v nmcli >/dev/null && nmcli -t -f RUNNING general 2>/dev/null | grep -qx running; then
	echo nm
elif command -v networkctl >/dev/null &&
	systemctl is-active --quiet systemd-networkd 2>/dev/null; then echo networkd
else echo ip; fi
""")

# As root: what an earlier `up` wrote.
OWN = script(r"""
S=%s
[ ! -e $S/files ] || sed 's/^/file /' $S/files
[ ! -e $S/original/runtime ] || sed 's/ .*//; s/^/port /' $S/original/runtime
""", STATE)

# Takes back a change whose guard ended with the machine.
LEFTOVER = script("S=%s\n[ ! -e $S/pending ] || { said=$(sh $S/node.sh leftover) && "
                  "echo \"reverted$said\"; } || { echo \"$said\"; exit 1; }\n", STATE)

MAC = re.compile("[0-9a-f]{2}(:[0-9a-f]{2}){5}")

# Kinds of the kernel that are one cable each; bonds, VLANs and the like are not.
CABLE_KINDS = (None, "veth", "netkit", "ipoib")


def interface_address(entry):
    """An entry of addr_info, as an address with its prefix; None if it has none."""
    found = answer.record(local=answer.maybe(answer.address))(entry)["local"]
    if not found:
        return None
    prefix = answer.number(0, found.max_prefixlen)
    return ipaddress.ip_interface((found, answer.record(prefixlen=prefix)(entry)["prefixlen"]))


# `fi_mesh nics --json`
NICS = answer.record(nics=answer.many(answer.record(
    netdev=answer.interface, kind=answer.text, link_kind=answer.maybe(answer.text),
    default_route=answer.flag, admin_up=answer.flag, carrier=answer.flag,
    mac=answer.maybe(answer.text), mtu=answer.number(0, 1 << 32),
    speed_mbps=answer.number(0, 100000000), rdma=answer.maybe(answer.record()))))
# `ip -j -d link show`; tunnels have addresses that are no MAC addresses.
LINKS = answer.many(answer.record(
    ifname=answer.interface, address=answer.maybe(answer.text),
    max_mtu=answer.maybe(answer.number(0, 1 << 32))))
# `ip -j address show`
ADDRESSES = answer.many(answer.record(
    ifname=answer.interface, addr_info=answer.maybe(answer.many(interface_address))))
TOOL = answer.one_of("netplan", "nm", "networkd", "ip")


class Nic:
    """One port of a node that may end a cable."""

    def __init__(self, entry, link, addresses):
        """@entry: of NICS; @link: of LINKS; @addresses: list of ip_interface"""
        self.name = entry["netdev"]
        self.kind = entry["kind"]
        self.mac = (link.get("address") or entry["mac"] or "").lower()
        self.mtu, self.max_mtu = entry["mtu"], link.get("max_mtu") or 65535
        self.speed = entry["speed_mbps"]
        self.up, self.carrier = entry["admin_up"], entry["carrier"]
        self.rdma = entry["rdma"] is not None
        self.addresses = addresses

    def global_addresses(self):
        """Those that belong to a subnet of its own, IPv4 first."""
        return sorted((a for a in self.addresses if not a.ip.is_link_local),
                      key=lambda a: a.version)

    def link_local(self):
        """The addresses fe80::... as text."""
        return {str(a.ip) for a in self.addresses if a.version == 6 and a.ip.is_link_local}

    def infiniband(self):
        """Whether it is IPoIB."""
        return self.kind == "infiniband"


def parts_of(text):
    """The output of LOOK as {name: text}; a part that is missing is empty."""
    parts = dict.fromkeys(("id", "connection", "fi_mesh", "nics", "links", "addresses", "tool"), "")
    for part in ("\n" + text).split("\n@@@ ")[1:]:
        name, _, rest = part.partition("\n")
        parts[name.strip()] = rest
    return parts


def connection_addresses(node, text):
    """
    The addresses from which ssh reaches the node, and at which, from its $SSH_CONNECTION: None for
    one that is not set, or is the node's loopback. Debian resolves a host's own name to 127.0.1.1.
    """
    words = text.split() + ["", "", ""]
    found = [answer.wanted(node, "$SSH_CONNECTION", answer.address, word)
             for word in (words[0], words[2])] if text.split() else []
    return ([None if a.is_loopback else str(a) for a in found] + [None, None])[:2]


def address_from_others(node, nodes):
    """
    Where no connection says at which address other nodes reach @node: one from which it has reached
    them, because this command runs on it, or one of its management network.
    """
    def name_of(address):
        return next((name for name, info in node.infos.items()
                     if address in [str(a.ip) for a in info]), None)

    own = [str(a.ip) for name in sorted(node.management) for a in node.infos.get(name, ())
           if not a.ip.is_link_local]
    clients = [other.client for other in nodes if other.client and name_of(other.client)]
    node.address = next(iter(clients + own), None)
    name = name_of(node.address)
    if name in node.nics:
        node.management.add(name)
        node.other_addresses += node.nics.pop(name).addresses


def management_of(address, nics, infos):
    """The NICs that lead here, by which we came in, or with the default route."""
    names = {nic["netdev"] for nic in nics if nic["default_route"]}
    return names | {name for name, info in infos.items() if address in [str(a.ip) for a in info]}


def is_candidate(entry, link, management):
    """Whether a NIC may end a cable of the mesh."""
    return (entry["kind"] in ("physical", "virtual", "infiniband") and
            entry["link_kind"] in CABLE_KINDS and entry["netdev"] not in management and
            "master" not in link)


def take(node, text):
    """Fills @node from the output of LOOK."""
    parts = parts_of(text)
    if "protocol version" not in parts["fi_mesh"]:
        raise Failure("%s: fi_mesh is not installed there, or not in PATH (--bin FOLDER): %s" %
                      (node.name, shorten(parts["fi_mesh"].strip().partition("\n")[0])))
    node.root = parts["id"].strip() == "0"
    node.tool = answer.wanted(node, "the tool that configures it", TOOL, parts["tool"].strip())
    node.client, node.address = connection_addresses(node, parts["connection"])
    entries = answer.document(node, "`fi_mesh nics --json`", parts["nics"], NICS)["nics"]
    links = {link["ifname"]: link for link in
             answer.document(node, "`ip -j -d link`", parts["links"], LINKS)}
    infos = {i["ifname"]: [a for a in i["addr_info"] or [] if a] for i in
             answer.document(node, "`ip -j address`", parts["addresses"], ADDRESSES)}
    node.infos = infos
    node.management = management_of(node.address, entries, infos)
    node.nics = {e["netdev"]: Nic(e, links.get(e["netdev"], {}), infos.get(e["netdev"], []))
                 for e in entries
                 if is_candidate(e, links.get(e["netdev"], {}), node.management)}
    node.macs = {link["address"].lower() for link in links.values()
                 if link["address"] and link.get("link_type") != "loopback"}
    # Where other NICs of the node are: no cable may get one of these subnets.
    node.other_addresses = [a for name, info in infos.items() if name not in node.nics
                            for a in info]


def look(node):
    """Asks one node; a Failure names it and what to do."""
    done = node.run(LOOK, note="(looks at NICs, addresses, tools)")
    if done.status == 255 or "@@@ tool" not in done.out:
        raise Failure(done.login_complaint(node))
    take(node, done.out)


def look_at_all(nodes):
    """Asks all nodes. Failure if one of them does not answer, with all that do not."""
    problems = []

    def one(node):
        try:
            look(node)
        except Failure as failure:
            problems.append(str(failure))

    on_all(nodes, one)
    if problems:
        raise Failure("\n".join(sorted(problems)))
    for i, node in enumerate(nodes):
        for other in nodes[:i]:
            if node.macs & other.macs:
                raise Failure("%s and %s are the same machine" % (other.name, node.name))
        if not node.address:
            address_from_others(node, nodes)


def leftover_undo(node):
    """
    Takes back a change whose guard ended with the machine. Returns what it says of that; "": there
    was none.
    """
    done = node.run(LEFTOVER, as_root=True, note="(looks for a change that was not finished)")
    if done.status == 1 and "not finished" in done.out:
        raise Failure("%s: %s" % (node.name, done.complaint()))
    return done.out.strip()


def own_files(node):
    """What an earlier `up` wrote there: node.files, node.own_ports."""
    done = node.run(OWN, as_root=True, note="(looks for earlier changes)")
    if done.status:
        raise Failure("%s: needs root there: log in as root, or allow sudo without a password (%s)"
                      % (node.name, done.complaint()))
    lines = done.out.splitlines()
    node.files = [answer.wanted(node, STATE + "/files", answer.path, line[5:])
                  for line in lines if line.startswith("file ")]
    node.own_ports = {answer.wanted(node, STATE + "/original/runtime", answer.interface, line[5:])
                      for line in lines if line.startswith("port ")}


def ports_restrict(nodes, lists):
    """--ports: LIST for all nodes, NODE=LIST for one."""
    for node in nodes:
        names = None
        for text in lists:
            name, equals, own = text.partition("=")
            if equals and name == node.name:
                names = own.split(",")
            elif not equals and names is None:
                names = text.split(",")
        if names is None:
            continue
        for name in names:
            if name not in node.nics:
                raise Failure("%s has no NIC %s that could end a cable; it has: %s" %
                              (node.name, name, ", ".join(sorted(node.nics)) or "none"))
        node.left_out = set(node.nics) - set(names)
        node.nics = {name: node.nics[name] for name in names}


def link_local_lend(node):
    """
    Gives ports with a link and without a link-local IPv6 address one until link_local_return():
    NetworkManager takes it from a port that it has not configured, and the neighbours on the cable
    are found by it. A port on which IPv6 is switched off stays as it is.
    """
    for nic in node.nics.values():
        if nic.up and nic.carrier and not nic.link_local() and MAC.fullmatch(nic.mac):
            mac = bytearray.fromhex(nic.mac.replace(":", ""))
            mac[0] ^= 2
            whole = b"\xfe\x80" + bytes(6) + mac[:3] + b"\xff\xfe" + mac[3:]
            address = ipaddress.ip_interface((ipaddress.ip_address(bytes(whole)), 64))
            done = node.run(script("ip address add %s dev %s scope link nodad\n", address,
                                   nic.name), as_root=True, note="(to find its cable)")
            if not done.status:
                node.lent.append((nic.name, address))
                nic.addresses.append(address)


def link_local_return(node):
    """Takes back link_local_lend()."""
    for name, address in node.lent:
        node.run(script("ip address del %s dev %s\n", address, name), as_root=True)
    node.lent = []


def ports_off(node):
    """Candidates that are administratively down."""
    return [nic.name for nic in node.nics.values() if not nic.up]


def ports_off_again(node):
    """Takes back ports_on()."""
    if node.was_down:
        node.run(script("for nic in %s; do ip link set dev $nic down; done\n", node.was_down),
                 as_root=True)
        node.was_down = []


def ports_on(node, names):
    """Sets them up, until the end of this command at least; node.was_down has them then."""
    # The carrier, and link-local addresses that are usable, take a moment.
    done = node.run(script(
        "for nic in %s; do ip link set dev $nic up || exit 1; done\n"
        "tries=10\nwhile [ $tries -gt 0 ]; do sleep 0.5; tries=$((tries - 1))\n"
        "ip -6 address show tentative | grep -q fe80 || [ $tries -gt 6 ] || break\ndone\n",
        names), as_root=True)
    if done.status:
        raise Failure("%s: cannot set %s up: %s" % (node.name, ", ".join(names), done.complaint()))
    node.was_down = names
