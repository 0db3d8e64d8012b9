#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ratio.py - compares two outputs of nccl_collectives row by row.

Usage: ratio.py OURS THEIRS

Prints the bus bandwidth of both and their ratio for each operation and size.
"""
import re
import sys

# size, elements, type, root, time, algorithm and bus bandwidth, wrong; NCCL's log may stand before.
ROW = re.compile(r"(?:^|\s)(\d+)\s+(\d+)\s+(uint32|float)\s+(\S+)\s+([\d.]+)\s+([\d.]+)"
                 r"\s+([\d.]+)\s+(\d+)\s*$")
HEAD = re.compile(r"^# ([a-z_]+)$")


def rows(lines):
    """{(operation, size, type, root): bus bandwidth in GB/s}, in the order of the output."""
    operation, found = None, {}
    for line in lines:
        head, row = HEAD.match(line.rstrip("\n")), ROW.search(line)
        if head:
            operation = head.group(1)
        elif row and operation:
            key = (operation, int(row.group(1)), row.group(3), row.group(4))
            found[key] = float(row.group(7))
    return found


def compare(ours, theirs):
    """Lines of the comparison: rows that both have."""
    for key, bandwidth in ours.items():
        other = theirs.get(key)
        if other is None:
            continue
        ratio = "%.2f" % (bandwidth / other) if other else "-"
        yield "%-16s %12d %7s %6s %9.3f %9.3f %7s" % (key + (bandwidth, other, ratio))


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    tables = []
    for name in arguments:
        with open(name, errors="replace") as file:
            tables.append(rows(file))
    lines = list(compare(*tables))
    if not lines:
        print("ratio.py: the two outputs have no row in common", file=sys.stderr)
        return 1
    print("%-16s %12s %7s %6s %9s %9s %7s" % ("# operation", "size (B)", "type", "root",
                                             "Mesh GB/s", "other", "ratio"))
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
