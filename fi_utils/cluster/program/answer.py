# SPDX-License-Identifier: Apache-2.0
"""
answer.py - turns what a node says into typed values, or a Failure that names the node and what it
sent. A node may lie: nothing of it is used before it has passed a rule of this file.

A rule takes a value and returns it typed; ValueError says in words what is wrong.
"""
import ipaddress
import json
import re

from remote import Failure, clean_line, shorten

LIST_MAX = 4096
DEPTH_MAX = 16
DIGITS_MAX = 20  # of a number in JSON


def refuse(value, kind):
    """Ends a rule."""
    raise ValueError('"%s" is not %s' % (shorten(str(value)), kind))


def matching(pattern, kind):
    """The rule for a text of which all matches @pattern."""
    def rule(value):
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            refuse(value, kind)
        return value
    return rule


# `fi_mesh plan` has the same rule (mesh_port_name_valid()): scripts and configuration files hold
# these names.
interface = matching(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}", "the name of an interface")
node_id = matching(r"0x[0-9a-f]{1,16}", "the id of a node")
# Those that `fi_mesh up` writes.
path = matching(r"/etc(/[A-Za-z0-9_-][A-Za-z0-9_.@-]*)+", "a path that `fi_mesh up` writes to")
text = matching(r"[ -~]*", "a text")


def one_of(*words):
    """The rule for one of these texts."""
    return matching("|".join(map(re.escape, words)), "one of " + ", ".join(words))


def flag(value):
    """true or false"""
    return value if isinstance(value, bool) else refuse(value, "true or false")


def number(low, high, kinds=int):
    """The rule for a number within limits."""
    def rule(value):
        if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
            refuse(value, "a number from %d to %d" % (low, high))
        return value
    return rule


def address(value):
    """An IP address as ipaddress has it, without a zone: that is any text to ipaddress."""
    try:
        return ipaddress.ip_address(value.partition("%")[0])
    except (AttributeError, ValueError):
        return refuse(value, "an IP address")


def maybe(rule):
    """The rule for a value that may be missing or null."""
    return lambda value: None if value is None else rule(value)


def many(rule):
    """The rule for a list."""
    def each(value):
        if not isinstance(value, list) or len(value) > LIST_MAX:
            refuse(type(value).__name__, "a list of at most %d entries" % LIST_MAX)
        return [named("[%d]" % i, rule, entry) for i, entry in enumerate(value)]
    return each


def record(**rules):
    """The rule for an object with these members; it may have others."""
    def members(value):
        if not isinstance(value, dict):
            refuse(type(value).__name__, "an object")
        typed = dict(value)
        for key, rule in rules.items():
            typed[key] = named("." + key, rule, value.get(key))
        return typed
    return members


def named(place, rule, value):
    """Applies a rule; an error begins with the place."""
    try:
        return rule(value)
    except ValueError as error:
        between = "" if str(error)[0] in ".[" else ": "
        raise ValueError(place + between + str(error)) from None


def wanted(node, what, rule, value):
    """Applies a rule to something that @node sent."""
    try:
        return rule(value)
    except ValueError as error:
        between = "" if str(error)[0] in ".[" else ": "
        raise Failure("%s: %s%s%s" % (node.name, what, between, error)) from None


# --- JSON -------------------------------------------------------------------------------------

def texts_clean(value, depth=0):
    """All texts of a document, cleaned."""
    if depth > DEPTH_MAX:
        raise ValueError("it is nested deeper than %d" % DEPTH_MAX)
    if isinstance(value, str):
        return clean_line(value)
    if isinstance(value, list):
        return [texts_clean(entry, depth + 1) for entry in value]
    if isinstance(value, dict):
        return {clean_line(key): texts_clean(entry, depth + 1) for key, entry in value.items()}
    return value


def integer(digits):
    """A number of JSON: many digits take Python long."""
    return int(digits) if len(digits) <= DIGITS_MAX else refuse(digits, "a number")


def real(digits):
    """A finite number of JSON."""
    value = float(digits)
    return value if abs(value) < float("inf") else refuse(digits, "a number")


def constant(word):
    """NaN and Infinity, which are not JSON."""
    return refuse(word, "a number")


def document(node, what, output, rule):
    """@output as JSON that passes @rule."""
    def read(_):
        try:
            found = json.loads(output, parse_int=integer, parse_float=real,
                               parse_constant=constant)
        except json.JSONDecodeError:
            raise ValueError("this is not valid JSON") from None
        except RecursionError:
            raise ValueError("it is nested deeper than %d" % DEPTH_MAX) from None
        return rule(texts_clean(found))
    return wanted(node, what, read, None)
