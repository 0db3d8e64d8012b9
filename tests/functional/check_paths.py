# SPDX-License-Identifier: Apache-2.0
# check_paths.py - compares the paths in fabric_pingpong's JSON with what a test expects.
"""
Reads lines "FILE FROM TO PATH..." as expect.sh writes them. Each pair of a FILE must be named, must
have no error, and must have taken exactly its paths, which are direct unless "@routed" is behind
them; the scope of a link-local address does not count. Exit status 1 with the reasons on stderr.
"""
import json
import sys


def document(name):
    """The JSON in a rank's output, which may have lines of its log around it."""
    text = open(name, encoding="utf-8", errors="replace").read()
    return json.loads(text[text.index("{\n"):text.rindex("\n}") + 2])


def matches(pattern, path):
    pattern, _, via = pattern.partition("@")
    nic, _, ends = pattern.partition(":")
    local, _, remote = ends.partition(">")
    have = [path["nic"], (path["local"] or "").partition("%")[0], path["remote"]]
    return path["via"] == (via or "direct") and all(
        want in ("*", value) for want, value in zip([nic, local, remote], have))


def pair_faults(pair, patterns):
    for error in pair["errors"]:
        yield error
    paths = pair["paths"]
    for path in paths:
        if not any(matches(pattern, path) for pattern in patterns):
            yield "took %(nic)s %(local)s>%(remote)s via %(via)s" % path
    for pattern in patterns:
        if not any(matches(pattern, path) for path in paths):
            yield "did not take " + pattern


def file_faults(name, expected):
    report = document(name)
    if report["ok"] is not True:
        yield "not ok: %s" % report["errors"]
    pairs = {(str(p["from"]), str(p["to"])): p for p in report["pairs"]}
    if set(pairs) != set(expected):
        yield "ran the pairs %s, not %s" % (sorted(pairs), sorted(expected))
    for key in sorted(set(pairs) & set(expected)):
        for fault in pair_faults(pairs[key], expected[key]):
            yield "pair %s-%s: %s" % (key + (fault,))


def main():
    files, faults = {}, 0
    for line in sys.stdin:
        name, start, end, *patterns = line.split()
        files.setdefault(name, {})[start, end] = patterns
    for name, expected in files.items():
        for fault in file_faults(name, expected):
            print("%s: %s" % (name, fault), file=sys.stderr)
            faults += 1
    if not files:
        sys.exit("check_paths.py: nothing was expected")
    if faults:
        sys.exit(1)
    print("  %d pairs in %d runs took their paths" % (sum(map(len, files.values())), len(files)))


main()
