# SPDX-License-Identifier: Apache-2.0
"""report.py - results of the runs: medians, spread, ratios, bounds; as table and JSON."""
import json
import math
import os
import statistics
import textwrap

OURS = "mesh"
RAW = "fi tagged"
# By x of the figure `stripe`: rates of the links, and what they must give, in units of one link.
STRIPES = {1: [1], 2: [1, 1], 3: [1, 1, 1], 12: [1, 2], 14: [1, 4]}
STRIPE_LABELS = {1: "1 link", 2: "2 links", 3: "3 links", 12: "1:2", 14: "1:4"}
STRIPE_BOUNDS = {2: 1.95, 3: 2.9, 12: 0.95 * 3, 14: 0.95 * 5}
SHARE_BOUND = 0.9
BUSY = 0.1  # figures taken while others used more of the machine than this are marked
BEGIN = "<!-- tests/bench/run: begin -->"
END = "<!-- tests/bench/run: end -->"


def cell_of(runs):
    return {"runs": runs, "median": statistics.median(runs), "least": min(runs), "most": max(runs)}


def find(figures, name, competitor, x):
    for cell in figures[name]["cells"] if name in figures else []:
        if (cell["competitor"], cell["x"]) == (competitor, x):
            return cell
    return None


def add_ratios(figures):
    """Each cell's ratio: our median to this one's."""
    for name, figure in figures.items():
        for cell in figure["cells"]:
            ours = find(figures, name, OURS, cell["x"])
            if ours and cell["competitor"] != OURS and cell["median"]:
                cell["ratio"] = round(ours["median"] / cell["median"], 3)


# --- the table ---

def size_text(size):
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return "%d %s" % (size >> shift, unit)
    return "%d B" % size


def short(value):
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = "%.*f" % (min(digits, 4), value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def cell_text(cell):
    if not cell:
        return "-"
    text = "%s (%s..%s)" % tuple(short(cell[k]) for k in ("median", "least", "most"))
    return text + (" **%.2f**" % cell["ratio"] if "ratio" in cell else "")


def aligned(rows):
    """Rows of texts as a Markdown table whose columns line up."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| %s |" % " | ".join(t.ljust(w) for t, w in zip(row, widths)) for row in rows]
    lines.insert(1, "|%s|" % "|".join("-" * (w + 2) for w in widths))
    return lines


def figure_table(figure):
    competitors, rows = [], {}
    for cell in figure["cells"]:
        if cell["competitor"] not in competitors:
            competitors.append(cell["competitor"])
        rows.setdefault(cell["label"], {})[cell["competitor"]] = cell
    table = [[figure["x_label"]] + competitors]
    table += [[label] + [cell_text(row.get(c)) for c in competitors]
              for label, row in rows.items()]
    busy = figure.get("others", 0)
    title = "### %s (%s)" % (figure["title"], figure["unit"])
    lines = [title, ""] + aligned(table)
    if busy > BUSY:
        lines += ["", "Measured while others used %.0f %% of the machine." % (100 * busy)]
    return lines + [""]


def bounds_table(bounds):
    rows = [["what must hold", "bound", "medians", "best runs", "holds"]]
    for bound in bounds:
        sign = "at least" if bound["better"] == "more" else "at most"
        rows.append([bound["what"], "%s %s" % (sign, short(bound["bound"])),
                     "%.3f" % bound["measured"], "%.3f" % bound["best"],
                     "yes" if bound["holds"] else "NO"])
    return ["### What must hold", ""] + aligned(rows) + [""]


def text_of(results):
    machine = results["machine"]
    about = ("%s, %d CPUs, Linux %s, libfabric %s, provider %s; commit %s, %s. %d rounds, "
             "interleaved; a cell is the median (least..most), and in bold our median divided by "
             "it." % (machine["cpu"], machine["cpus"], machine["kernel"], machine["libfabric"],
                      results["provider"], results["commit"], results["date"], results["rounds"]))
    lines = textwrap.wrap(about, 100) + [""]
    if results["bounds"]:
        lines += bounds_table(results["bounds"])
    for figure in results["figures"].values():
        lines += figure_table(figure)
    return "\n".join(lines)


# --- what must hold ---

def cell_ratios(ours, other, best="most"):
    """(our median to the other's, our best run to the other's), or None."""
    if not ours or not other:
        return None
    return ours["median"] / other["median"], ours[best] / other[best]


def bounds_of(figures):
    """The lines of the requirement that these figures can judge."""
    found = []

    def bound(what, measured, limit, better="more"):
        if measured is None:
            return
        median, best = measured
        found.append({"what": what, "measured": round(median, 4), "best": round(best, 4),
                      "bound": limit, "better": better,
                      "holds": median >= limit if better == "more" else median <= limit})

    for x, size in ((1 << 20, "1 MiB"), (4 << 20, "4 MiB")):
        bound("%s stream, 8 in flight, to raw libfabric" % size,
              cell_ratios(find(figures, "stream-8", OURS, x), find(figures, "stream-8", RAW, x)),
              0.97)
    bound("half round trip of 8 B, to raw libfabric",
          cell_ratios(find(figures, "pingpong", OURS, 8), find(figures, "pingpong", RAW, 8),
                      "least"), 1.15, "less")
    for ranks in (2, 3):
        kept = {(name, who): cell_ratios(find(figures, name, who, 32), find(figures, name, who, 1))
                for name in ("ring-%d" % ranks, "ring-%d-shaped" % ranks) for who in (OURS, "TCP")}
        bound("%d ranks, all-reduce with 32 comms to one, on shaped links" % ranks,
              kept["ring-%d-shaped" % ranks, OURS], 0.95)
        # There the memory limits the rate: 32 comms' slots fit into no cache.
        ours, plain = kept["ring-%d" % ranks, OURS], kept["ring-%d" % ranks, "TCP"]
        bound("the same without a limit, to what plain TCP keeps of its own",
              ours and plain and tuple(a / b for a, b in zip(ours, plain)), 0.95)
    for x, size in ((4 << 10, "4 KiB"), (1 << 20, "1 MiB")):
        cell = find(figures, "share", OURS, x)
        bound("%s, comms beside one whose receiver stopped, to all reading" % size,
              cell and (cell["median"], cell["most"]), SHARE_BOUND)
    one = find(figures, "stripe", OURS, 1)
    for x, what in ((2, "two equal links to one"), (3, "three equal links to one"),
                    (12, "links of 1:2, to their sum"), (14, "links of 1:4, to their sum")):
        both = cell_ratios(find(figures, "stripe", OURS, x), one)
        parts = 1 if x < 10 else sum(STRIPES[x])
        bound(what, both and tuple(r / parts for r in both), round(STRIPE_BOUNDS[x] / parts, 3))
    return found


# --- files ---

def write(results, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "results.json"), "w") as out:
        json.dump(results, out, indent=1)
        out.write("\n")
    with open(os.path.join(folder, "results.txt"), "w") as out:
        out.write(text_of(results) + "\n")


def put_into(results, path):
    """Replaces what stands between the two markers of a document."""
    with open(path) as f:
        text = f.read()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    with open(path, "w") as out:
        out.write("%s%s\n\n%s\n%s%s" % (before, BEGIN, text_of(results), END, after))
