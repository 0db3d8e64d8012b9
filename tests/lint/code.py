#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""code.py - checks of the source text: layers, circles, sizes, budgets, licences, line lengths.

Usage: code.py CHECK FILE...   (CHECK: layers, circles, sizes, budgets, spdx, lines)
Prints one line per finding; exit status 1 if there is any.
"""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# These are logic; a test can call them with any input. No I/O belongs there.
PURE = ("nic", "wire")
FOREIGN_TO_PURE = re.compile(
    r"rdma/|infiniband/|netlink/|linux/|dirent\.h|fcntl\.h|ifaddrs\.h|netdb\.h|poll\.h|"
    r"pthread\.h|threads\.h|unistd\.h|sys/(?!socket\.h|types\.h|param\.h|uio\.h)")


FILE_LIMIT = 600
FUNCTION_LIMIT = 60
LINE_LIMIT = 100
TAB = 8

CODE = (".c", ".h")
COMMENTED = (".c", ".h", ".sh", ".py", ".map", ".yml", ".1", ".5", ".7")
NO_SPDX_NEEDED = ("LICENSE", ".md", ".txt", ".ldflags", ".dict", ".json", ".bin", ".svg")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8", errors="replace") as f:
        return f.read().splitlines()


def layers():
    """src/LAYERS: from the bottom to the top."""
    return [line.strip() for line in read("src/LAYERS")
            if line.strip() and not line.startswith("#")]


def layer_of(path):
    """The layer of src/<layer>/...; "nccl" for include/nccl/...; None elsewhere."""
    parts = path.split("/")
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ["include", "nccl"]:
        return "nccl"
    if parts[0] == "fi_utils":
        return "fi_utils"
    return None


def layer_of_include(name):
    """Project headers are included as "layer/file.h"; NCCL's ABI as <nccl/file.h>."""
    parts = name.split("/")
    if len(parts) == 2 and (parts[0] in layers() or
                            os.path.isdir(os.path.join(TOP, "src", parts[0]))):
        return parts[0]
    return None


def includes(path):
    for number, line in enumerate(read(path), 1):
        found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if found:
            yield number, found.group(1), found.group(2)


def check_layers(path):
    own = layer_of(path)
    if not path.endswith(CODE) or own is None:
        return
    order = layers()
    if own != "fi_utils" and own not in order:
        yield 1, "'%s' is not a layer (%s)" % (own, " < ".join(order))
        return
    rank = order.index("nccl") - 1 if own == "fi_utils" else order.index(own)
    for number, quote, name in includes(path):
        other = layer_of_include(name)
        if other is not None and other not in order:
            yield number, '"%s" is in no layer' % name
        elif other is not None and order.index(other) > rank:
            yield number, '%s must not include "%s": %s lies above it' % (own, name, other)
        if own in ("base",) + PURE and name.startswith("rdma/"):
            yield number, "%s must not include <%s>: libfabric starts at fabric" % (own, name)
        elif own in PURE and FOREIGN_TO_PURE.match(name):
            yield number, "%s is pure logic and must not include <%s>" % (own, name)
        if quote == '"' and own != "fi_utils" and "/" not in name:
            yield number, 'write "<layer>/%s"' % name


def module_of(path):
    """A source and its header are one module: src/fabric/flow.c and flow.h are src/fabric/flow."""
    return os.path.splitext(path)[0]


def module_of_include(path, name):
    """The module that a file gets with this include, or None if it is not one of ours."""
    for folder in ("src", "fi_utils", os.path.dirname(path)):
        header = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(os.path.join(TOP, header)):
            return module_of(header)
    return None


def modules(paths):
    """module -> {module it includes: (path, line)}, of src/ and fi_utils/."""
    graph = {}
    for path in paths:
        if path.endswith(CODE) and path.startswith(("src/", "fi_utils/")):
            needs = graph.setdefault(module_of(path), {})
            for number, _quote, name in includes(path):
                other = module_of_include(path, name)
                if other and other != module_of(path):
                    needs.setdefault(other, (path, number))
    return graph


def circle_from(graph, start):
    """The shortest path from a module over its includes back to itself; [] if there is none."""
    came_from, queue = {start: None}, [start]
    for module in queue:
        for other in sorted(graph.get(module, {})):
            if other == start:
                circle = [start]
                while module:
                    circle.append(module)
                    module = came_from[module]
                return circle[::-1]
            if other not in came_from:
                came_from[other] = module
                queue.append(other)
    return []


def folders(graph):
    """The same for the folders of fi_utils; those of src/ are layers, which have an order."""
    result = {}
    for module, needs in graph.items():
        own = os.path.dirname(module)
        for other, where in needs.items():
            folder = os.path.dirname(other)
            if own.startswith("fi_utils/") and folder.startswith("fi_utils/") and folder != own:
                result.setdefault(own, {}).setdefault(folder, where)
    return result


def check_circles(paths):
    """Yields (path, line, text) for each circle of modules, or folders, that include each other."""
    graph, known = modules(paths), set()
    graph.update(folders(graph))
    for module in sorted(graph):
        circle = circle_from(graph, module)
        if circle and frozenset(circle) not in known:
            known.add(frozenset(circle))
            path, number = graph[module][circle[1]]
            yield path, number, "a circle of includes: " + " -> ".join(circle)


def functions(lines):
    """(first line, last line, name) of each function: kernel style puts its braces in column 1."""
    start = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            start = number
            while start > 1 and re.match(r"[^\s#/}].*|\t.*[^;]$", lines[start - 2]) \
                    and not lines[start - 2].rstrip().endswith((";", "*/", "}")):
                start -= 1
        elif line.startswith("}") and start:
            text = " ".join(lines[start - 1:number])
            name = re.search(r"(\w+)\s*\(", text)
            yield start, number, name.group(1) if name else "?"
            start = None


def size_exceptions():
    """tests/lint/size-exceptions: 'path limit reason' or 'path:function limit reason' lines."""
    path = os.path.join(TOP, "tests/lint/size-exceptions")
    limits = {}
    if os.path.exists(path):
        for line in read("tests/lint/size-exceptions"):
            if line.strip() and not line.startswith("#"):
                what, limit, _reason = line.split(None, 2)
                limits[what] = int(limit)
    return limits


def check_sizes(path, exceptions=size_exceptions()):
    if not path.endswith(CODE):
        return
    lines = read(path)
    limit = exceptions.get(path, FILE_LIMIT)
    if len(lines) > limit:
        yield 1, "%d lines, limit %d" % (len(lines), limit)
    for start, end, name in functions(lines):
        limit = exceptions.get("%s:%s" % (path, name), FUNCTION_LIMIT)
        if end - start + 1 > limit:
            yield start, "%s() has %d lines, limit %d" % (name, end - start + 1, limit)


# What may not grow: name in tests/lint/budgets, files, what is counted in them (None: files). A
# time is a constant of src, a flag a bool member there.
BUDGETS = (
    ("lines of src and include", r"(src|include)/", r"\n"),
    ("files in src", r"src/", None),
    ("times", r"src/", r"^#define [A-Z_0-9]+_(?:MS|US|NS|S)\s"),
    ("flags", r"src/.*\.[ch]$",
     r"^[ \t]+(?:atomic_bool|bool) [a-z_, ]+(?:MESH_GUARDED_BY.[a-z]+.)?;"),
    ("calls of internals in unit tests", r"tests/unit/(setup|transport|control|relay)/",
     r"\bmesh_[a-z0-9_]+\("),
)


def budget_used(paths, files, counted):
    """How much of a budget these files use."""
    paths = [path for path in paths if re.match(files, path)]
    if counted is None:
        return len(paths)
    return sum(len(re.findall(counted, "\n".join(read(path)) + "\n", re.M)) for path in paths)


def check_budgets(paths):
    """Yields (path, line, text) for what is used up more than tests/lint/budgets allows."""
    for number, line in enumerate(read("tests/lint/budgets"), 1):
        if not line or line.startswith("#"):
            continue
        name, limit = line.rsplit(None, 1)
        files, counted = next(b[1:] for b in BUDGETS if b[0] == name)
        used = budget_used(paths, files, counted)
        if used > int(limit):
            yield "tests/lint/budgets", number, "%s: %d, limit %s" % (name, used, limit)


def check_spdx(path):
    lines = read(path)
    script = bool(lines) and lines[0].startswith("#!")
    name = os.path.basename(path)
    if not lines or "/corpus/" in path or path.endswith(NO_SPDX_NEEDED) or name in NO_SPDX_NEEDED:
        return
    first = "\n".join(lines[:3])
    wanted = "SPDX-License-Identifier: Apache-2.0"
    if path.endswith(CODE) and lines[0] != "/* %s */" % wanted:
        yield 1, "the first line must be /* %s */" % wanted
    elif (path.endswith(COMMENTED) or script or name.startswith(("SCons", "."))) \
            and wanted not in first:
        yield 1, "no '%s' in the first three lines" % wanted


def check_lines(path):
    if path.endswith((".md", ".json", ".svg")) or "/corpus/" in path or path == "LICENSE":
        return
    for number, line in enumerate(read(path), 1):
        if len(line.expandtabs(TAB)) > LINE_LIMIT:
            yield number, "%d columns, limit %d" % (len(line.expandtabs(TAB)), LINE_LIMIT)
        if line != line.rstrip():
            yield number, "blanks at the end of the line"


def main():
    of_one = {"layers": check_layers, "sizes": check_sizes, "spdx": check_spdx,
              "lines": check_lines}
    of_all = {"circles": check_circles, "budgets": check_budgets}
    check = sys.argv[1] if len(sys.argv) > 1 else ""
    if check in of_one:
        found = [(path,) + finding for path in sys.argv[2:] for finding in of_one[check](path)]
    elif check in of_all:
        found = list(of_all[check](sys.argv[2:]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    for path, number, text in found:
        print("%s:%d: %s" % (path, number, text))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
