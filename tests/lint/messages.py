#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""messages.py - what docs/troubleshooting.md quotes is what the software prints.

Usage: messages.py [TREE]   (default: this one)
A quotation is a line '> WHO: SENTENCE', where … stands for whatever is filled in. All parts of it
have to be in one message of WHO's source, in order. One line for each that is not; exit status 1.
"""
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(TOP, "docs/troubleshooting.md")
# Program: the folders of its messages, and the file without which it is not in the tree.
SOURCES = {
    "plugin": ("src/*/*.c", "src/nccl/plugin.c"),
    "fi_mesh check": ("fi_utils/*/*.c", "fi_utils/check/command.c"),
    "fi_mesh check --peer": ("fi_utils/*/*.c", "fi_utils/peer/command.c"),
}
LITERAL = r'"(?:[^"\\\n]|\\.)*"'
# Neighbouring literals are one; what the preprocessor puts between them is filled in.
CHAIN = re.compile(r"%s(?:\s*(?:[A-Z]\w*\s*)?%s)*(?:\s*[A-Z][A-Z_]+\b)?" % (LITERAL, LITERAL))
CONVERSION = re.compile(
    r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]|%(?=…|$)")


def messages(pattern):
    for path in glob.glob(pattern):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for chain in CHAIN.finditer(text):
            parts = re.findall(LITERAL + r"|[A-Z]\w*", chain.group())
            joined = "".join(part[1:-1] if part[0] == '"' else "…" for part in parts)
            joined = joined.replace('\\"', '"').replace("%%", "\0")
            yield CONVERSION.sub("…", joined).replace("\0", "%")


def within(sentence, message):
    at = 0
    for part in sentence.split("…"):
        at = message.find(part.strip(), at)
        if at < 0:
            return False
        at += len(part.strip())
    return True


def main():
    tree = sys.argv[1] if len(sys.argv) > 1 else TOP
    found = {who: list(messages(os.path.join(tree, pattern)))
             for who, (pattern, needed) in SOURCES.items()
             if os.path.exists(os.path.join(tree, needed))}
    bad = 0
    with open(PAGE, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            quotation = re.match(r"> ([^:]+): (.*)", line)
            if not quotation:
                continue
            who, sentence = quotation.groups()
            if who not in SOURCES:
                print("docs/troubleshooting.md:%d: no program is called '%s'" % (number, who))
                bad = 1
            elif who in found and not any(within(sentence, m) for m in found[who]):
                print("docs/troubleshooting.md:%d: %s does not print: %s" % (number, who, sentence))
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
