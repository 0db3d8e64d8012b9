# SPDX-License-Identifier: Apache-2.0
"""report.py - what the commands print: text for people, one JSON document for programs."""
import json
import shutil
import sys
import textwrap

from remote import quote
from wires import cable_text, port_text, speed_text


def row_text(row, widths, columns):
    """As fi_utils/common/table.c: what does not fit continues on indented lines, in columns too."""
    text, used = "", 0
    for i, (cell, width) in enumerate(zip(row, widths)):
        if i and width > columns - used:
            text, used = text.rstrip() + "\n    ", 4
        lines = textwrap.wrap(cell, max(columns - used, 1), break_long_words=False,
                              break_on_hyphens=False)
        text += ("\n" + " " * used).join(lines) + " " * (width - len(cell) + 2)
        used += width + 2
    return text.rstrip() + "\n"


def table(rows, titles):
    """Columns with two blanks between them, not wider than a terminal."""
    rows = [titles] + rows
    widths = [max(len(row[i]) for row in rows) for i in range(len(titles))]
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    return "".join(row_text(row, widths, columns) for row in rows)


def cables_text(nodes, wires):
    """The cables that were found."""
    rows = []
    for cable in wires.cables:
        ends = [nodes[node].nics[nic] for node, nic in cable]
        speed = min(end.speed for end in ends)
        half = wires.halves.get(cable, 1)
        rows.append([port_text(cable.a), port_text(cable.b),
                     speed_text(speed) if speed else "?",
                     " / ".join(dict.fromkeys(str(end.mtu) for end in ends)),
                     "one of %d halves of a cable" % half if half > 1 else ""])
    physical = sum(1 / wires.halves.get(cable, 1) for cable in wires.cables)
    return "%d cable%s between %d nodes:\n\n%s" % (
        round(physical), "" if round(physical) == 1 else "s", len(nodes),
        table(rows, ["FROM", "TO", "RATE", "MTU", ""]))


def finding_text(verdict, text, fix, start="%-8s "):
    """As `fi_mesh check` prints a finding."""
    lines = start % verdict + text + "\n"
    return lines + (start % "" + "do: %s\n" % fix if fix else "")


def faults_text(faults):
    """All faults."""
    return "".join(finding_text(fault.verdict, fault.text, fault.fix) for fault in faults)


def plan_text(plan):
    """The addresses of each cable, and which of them are kept."""
    rows = []
    kept = {port_text(cable.a): True for cable in plan.kept}
    for cable in plan.json["cables"]:
        a, b = cable["ends"]
        name_a, name_b = port_text((a["node"], a["port"])), port_text((b["node"], b["port"]))
        rows.append([name_a, a["address"], name_b, b["address"],
                     "kept" if kept.get(name_a) or kept.get(name_b) else "new"])
    return "The plan (MTU %d):\n\n%s" % (
        plan.mtu, table(rows, ["FROM", "ADDRESS", "TO", "ADDRESS", ""]))


def change_text(change):
    """What one node will do, and the difference of its files."""
    node = change.node
    if change.is_empty():
        return "%s: nothing to change\n" % node.name
    tools = {"netplan": "netplan", "nm": "NetworkManager", "networkd": "systemd-networkd",
             "ip": "ip commands, until the next boot"}
    text = "%s, with %s:\n" % (node.name, tools[node.tool])
    text += "".join("  %s\n" % line for line in change.runtime)
    text += "".join("  %s: %s goes\n" % drop for drop in change.drop)
    text += "".join("  %s is about these NICs only: it goes, until `fi_mesh down`\n" % path
                    for path in sorted(change.replaced))
    text += "".join("  %s names these NICs, too: if it gives them addresses, the change is "
                    "reverted; remove them from it\n" % path for path in sorted(change.foreign))
    return text + "".join(diff for _, diff in change.diff())


def nodes_text(found):
    """`fi_mesh check` of each node: what is not right."""
    text = ""
    for name, report in found.items():
        text += "%s: %d passed, %d warn, %d fail\n" % (name, report["pass"], report["warn"],
                                                       report["fail"])
        for check in report["checks"]:
            text += "".join(
                finding_text(finding["verdict"], finding["text"], finding["fix"], "  %-6s ")
                for finding in check["findings"] if finding["verdict"] in ("warn", "fail"))
    return text


def links_text(found):
    """`fi_mesh check --peer`: a line for each link, and what is not right."""
    text = ""
    for name, report in found.items():
        for peer in report["peers"]:
            for section in peer["sections"]:
                if section["id"] == "link":
                    rates = [("%.1f" % section[key]) if section[key] else "?"
                             for key in ("to_gbps", "from_gbps")]
                    text += "%-8s %s:%s - %s:%s, %s, %s Gbit/s there, %s back\n" % (
                        section["verdict"], name, section["nic"], peer["node"],
                        section["peer_nic"], section["provider"], *rates)
                text += "".join(
                    finding_text(finding["verdict"], finding["text"], finding["fix"])
                    for finding in section["findings"] if finding["verdict"] != "pass")
    return text


def start_text(plan, nodes):
    """How to start PyTorch and vLLM on these nodes."""
    ranks = plan.json["ranks"]
    master = nodes[ranks[0]].address
    head = "[%s]" % master if ":" in master else master
    exports = "".join("                         export %s=%s\n" % (name, quote(value))
                      for name, value in plan.json["environment"].items())
    return """
On each node, once:      sudo fi_mesh enable
Ranks, by the cables:    %s
PyTorch, on rank R:      torchrun --nnodes %d --nproc_per_node 1 --node_rank R \\
                             --master_addr %s --master_port 29500 PROGRAM
vLLM, on rank 0:         ray start --head --node-ip-address %s
      on the others:     ray start --address %s:6379
      on rank 0:         vllm serve MODEL --pipeline-parallel-size %d \\
                             --distributed-executor-backend ray
In containers, for each rank:
%s""" % (" ".join(ranks), len(ranks), master, master, head, len(ranks), exports)


# --- JSON -------------------------------------------------------------------------------------

class Document:
    """Collects what --json prints."""

    def __init__(self, name):
        self.root = {name: 1, "nodes": [], "cables": [], "faults": [], "plan": None,
                     "changes": [], "applied": False, "problems": [], "checks": None,
                     "links": None, "pingpong": None, "nccl": None}

    def nodes(self, nodes):
        """The nodes, as they were found."""
        self.root["nodes"] = [
            {"name": node.name, "address": node.address, "tool": node.tool,
             "ports": [{"name": nic.name, "mtu": nic.mtu, "speed_mbps": nic.speed,
                        "carrier": nic.carrier, "rdma": nic.rdma,
                        "addresses": [str(a) for a in nic.addresses]}
                       for nic in node.nics.values()]} for node in nodes]

    def wires(self, wires, faults):
        """Cables and faults."""
        self.root["cables"] = [
            {"ends": [{"node": node, "port": nic} for node, nic in cable],
             "halves": wires.halves.get(cable, 1), "text": cable_text(cable)}
            for cable in wires.cables]
        self.root["faults"] = [fault._asdict() for fault in faults]

    def changes(self, plan, changes):
        """The plan, and each node's change."""
        self.root["plan"] = plan.json
        self.root["changes"] = [
            {"node": name, "tool": change.node.tool, "runtime": change.runtime,
             "files": [{"path": path, "diff": diff} for path, diff in change.diff()]}
            for name, change in changes.items() if not change.is_empty()]

    def print(self):
        """On standard output."""
        json.dump(self.root, sys.stdout, indent=1)
        print()
