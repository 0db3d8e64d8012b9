#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_dashboard.py - the dashboard's queries fit what `fi_mesh watch --prometheus` prints.

Usage: check_dashboard.py DASHBOARD METRICS
Each metric of a query is declared in METRICS; each label that a query selects or sums by, and each
that a legend shows, is on the samples of that metric (those of RDMA ports may have none here).
Counters are read by a function, gauges are not. Exit status 1 with a line for each finding.
"""
import json
import re
import sys

# Prometheus adds it to all that it scrapes.
SCRAPED = {"instance"}
METRIC = re.compile(r"\bnccl_mesh_\w+")
SELECTOR = re.compile(r"(nccl_mesh_\w+)\{([^}]*)\}")
SUM_BY = re.compile(r"\bby \(([^)]*)\)")
COUNTER_READ = r"(?:rate|increase)\(%s\{"


def metrics_read(path):
    """Name -> type, and name -> labels of its samples."""
    types, labels = {}, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = re.match(r"# TYPE (\S+) (\S+)", line)
            if found:
                types[found.group(1)] = found.group(2)
            found = re.match(r"(nccl_mesh_\w+)\{(.*)\} \S+$", line)
            if found:
                labels.setdefault(found.group(1), set()).update(
                    re.findall(r'(\w+)="', found.group(2)))
    return types, labels


def query_problems(query, legend, types, labels):
    names = set(METRIC.findall(query))
    asked = {name.strip() for group in SUM_BY.findall(query) for name in group.split(",")}
    asked |= set(re.findall(r"\{\{(\w+)\}\}", legend))
    if not names:
        yield "no metric of ours in: %s" % query
    for name in sorted(names):
        if name not in types:
            yield "%s is not a metric" % name
            continue
        selected = {label for metric, inside in SELECTOR.findall(query) if metric == name
                    for label in re.findall(r"(\w+)[=!]", inside)}
        missing = (asked | selected) - SCRAPED - labels.get(name, asked | selected)
        for label in sorted(missing):
            yield "%s has no label %s: %s" % (name, label, query)
        if name not in labels and not name.startswith("nccl_mesh_rdma_"):
            yield "%s has no sample to compare with" % name
        if (types[name] == "counter") != bool(re.search(COUNTER_READ % name, query)):
            yield "%s is a %s: %s" % (name, types[name], query)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        dashboard = json.load(file)
    types, labels = metrics_read(sys.argv[2])
    problems, queries = [], 0
    for variable in dashboard["templating"]["list"]:
        for name in METRIC.findall(variable["query"]):
            if name not in types:
                problems.append("%s is not a metric" % name)
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            queries += 1
            problems += ["%s: %s" % (panel["title"], problem) for problem in
                         query_problems(target["expr"], target["legendFormat"], types, labels)]
    print("\n".join(problems) if problems else "  %d queries fit" % queries)
    return 1 if problems or not queries else 0


if __name__ == "__main__":
    sys.exit(main())
