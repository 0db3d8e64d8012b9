#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs.py - what the documentation points to is there.

Usage: docs.py [TREE]   (default: this one)
In README.md, CONTRIBUTING.md, NEWS.md and docs/: links and their anchors, paths of the tree in
backticks, options of fi_mesh's commands, settings NCCL_MESH_*. Lines of Markdown have at most 100
columns; headings, tables, code blocks and quoted messages may be longer. Each manual page describes
all options that --help lists. Each code block of a guide has a line before it that says whether a
test types it (<!-- tried: ... -->, tests/functional/test_guides.sh), which test does the same
(<!-- by: FILE -->), or why it is not run (<!-- not run: WHY -->). One line for each finding; exit
status 1.
"""
import glob
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# docs/architecture.md says where they will be.
PLANNED = {"src/transport/relay.c", "src/transport/recovery.c"}
LINK = re.compile(r"\]\(([^)\s]+)\)")
QUOTED_PATH = re.compile(r"`((?:src|tests|docs|fi_utils|include|examples|scripts)/[^`\s]*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
# A row of a subcommand's table of options (fi_utils/common/options.h): name, value, help or NULL.
OPTION_ROW = re.compile(r"""\{"([a-z][a-z0-9-]*)",\s*(?:'.'|0),\s*(?:"[^"]*"|NULL),\s*(NULL|")""")
# The same in Python: fi_mesh up and its like.
PYTHON_ROW = re.compile(r"""\badd\((?:"-.", )?"--([a-z][a-z-]*)\"""")
CLUSTER = "fi_utils/cluster/program/__main__.py"
COMMANDS = {command: ["fi_utils/%s/command.c" % command]
            for command in ("nics", "check", "plan", "topo", "serve", "watch", "config",
                            "enable", "neighbours")}
# One file has both tables; `fi_mesh disable` has no option of its own.
COMMANDS["disable"] = COMMANDS["enable"]
COMMANDS["check"].append("fi_utils/peer/command.c")
COMMANDS["up"] = COMMANDS["down"] = []
# Where another command's page describes it.
PAGES = {"disable": "enable", "down": "up"}
COMMAND = re.compile(r"fi_mesh (%s)\b([^`|;#>]*)" % "|".join(COMMANDS))
MARK = re.compile(r"<!-- (?:tried: .+|by: (?P<test>\S+)|not run: .+) -->$")
SETTING = re.compile(r"NCCL_MESH_[A-Z_]*[A-Z]")
COLUMNS = 100
# A heading, a table's row, a quoted message, and a link or path that cannot be broken.
MAY_BE_LONG = re.compile(r"#|\s*\||> |\s*(?:[-*]\s+)?\S+$")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def anchors(path):
    """What a page's headings are called in links (GitHub's rule)."""
    for heading in re.findall(r"^#+ (.*)$", read(path), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links_missing(page, text):
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(path):
            yield "link to %s, which is not there" % link
        elif anchor and anchor not in anchors(path):
            yield "link to %s: there is no such heading" % link


def paths_missing(text):
    for path in QUOTED_PATH.findall(text):
        path = re.sub(r"\b(LAYER|NAME)\b", "*", path).rstrip(".,:")
        if path not in PLANNED and "…" not in path and not glob.glob(path):
            yield "%s is not in the tree" % path


def options_missing(text, commands):
    for command, rest in COMMAND.findall(text):
        for option in OPTION.findall(rest):
            if option[2:] not in commands[command] and option != "--help":
                yield "fi_mesh %s has no option %s" % (command, option)


def options_undescribed(command, rows):
    """Options that --help lists and the manual page does not."""
    page = "docs/man/fi_mesh-%s.1" % PAGES.get(command, command)
    text = read(page).replace("\\-", "-")
    if not rows:
        yield "fi_mesh %s: no row of its options was found" % command
    for name, shown in rows:
        if shown != "NULL" and "--" + name not in OPTION.findall(text):
            yield "%s: does not describe --%s" % (page, name)


def pingpong_options_undescribed():
    """Options of fabric_pingpong --help that its manual page lacks."""
    page = "docs/man/fabric_pingpong.1"
    described = OPTION.findall(re.sub(r"\\f[BIR]", " ", read(page)).replace("\\-", "-"))
    for name, _ in OPTION_ROW.findall(read("tests/fabric_pingpong/options.c")):
        if "--" + name not in described:
            yield "%s: does not describe --%s" % (page, name)


def help_too_wide():
    """Lines of --help that a terminal of 80 columns breaks, of the programs that are built."""
    programs = [["build/fi_mesh", command] for command in COMMANDS] + [["build/fabric_pingpong"]]
    for program in programs if os.path.exists("build/fi_mesh") else []:
        done = subprocess.run(program + ["--help"], stdout=subprocess.PIPE, check=True)
        for line in done.stdout.decode().split("\n"):
            if len(line) > 80:
                yield "%s --help: %d columns: %s" % (" ".join(program), len(line), line)


def settings_missing(text, settings):
    for name in SETTING.findall(text):
        if name not in settings and not name.startswith("NCCL_MESH_CHECK"):
            yield "there is no setting %s" % name


def blocks_unmarked(text):
    """Code blocks of a guide of which no line says how they were tried."""
    before, code = "", False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            mark = MARK.match(before)
            if not code and not mark:
                yield "line %d: no test, and no reason why not" % number
            elif not code and mark.group("test") and not os.path.exists(mark.group("test")):
                yield "line %d: there is no %s" % (number, mark.group("test"))
            code = not code
        before = line


def lines_too_long(text):
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif len(line) > COLUMNS and not code and not MAY_BE_LONG.match(line):
            yield "line %d has %d columns; wrap it at %d" % (number, len(line), COLUMNS)


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else TOP)
    # Docs name the settings of nccl-mesh-plugin, too, to say what replaces them.
    settings = set(SETTING.findall(read("src/base/config.c")) +
                   SETTING.findall(read("fi_utils/check/nccl.c")))
    rows = {command: [row for path in paths for row in OPTION_ROW.findall(read(path))]
            for command, paths in COMMANDS.items()}
    for command in "up", "down":
        rows[command] = [(name, '"') for name in PYTHON_ROW.findall(read(CLUSTER))]
    # The page of `up` describes `check --all`.
    rows["check"] += [(name, "NULL") for name, _ in rows["up"]]
    commands = {command: {name for name, _ in found} for command, found in rows.items()}
    pages = [page for page in ("README.md", "CONTRIBUTING.md", "NEWS.md")
             if os.path.exists(page)]
    pages += sorted(glob.glob("docs/**/*.md", recursive=True) + glob.glob("docs/man/*.1"))
    bad = 0
    for command, found in rows.items():
        for problem in options_undescribed(command, found):
            print(problem)
            bad = 1
    for problem in [*pingpong_options_undescribed(), *help_too_wide()]:
        print(problem)
        bad = 1
    for page in pages:
        text = read(page)
        for problem in sorted({*links_missing(page, text), *paths_missing(text),
                               *options_missing(text, commands),
                               *settings_missing(text, settings)}):
            print("%s: %s" % (page, problem))
            bad = 1
        if page.startswith("docs/guides/"):
            for problem in blocks_unmarked(text):
                print("%s: %s" % (page, problem))
                bad = 1
        if page.endswith(".md"):
            for problem in lines_too_long(text):
                print("%s: %s" % (page, problem))
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
