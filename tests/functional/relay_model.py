# SPDX-License-Identifier: Apache-2.0
"""
relay_model.py - can relays that hold segments until they can pass them on wait for each other?

Stores and forwards segments in random order over lines, rings and random graphs. All pairs of nodes
that are not neighbours send at once, over several circuits each. The memory of the last hop is
always free, because the receiver has granted it. Who owns the memory of a relay is the policy:

shared   one slab for all, taken by whatever segment comes
classes  the same, split by the number of relays that a segment still has ahead
grants   one slab; a grant that passes takes a slot, and keeps it until its segment has come: the
         receiver posts before the sender sends, and some circuits stay idle with grants posted
circuit  each circuit has slots of its own in each relay; the sender keeps a slot until the receiver
         has the segment; each third one is the last piece of a longer segment, and does not leave
         before the receiver has the other two

A policy is safe if no schedule ends with segments that cannot move.
"""
import argparse
import collections
import random
import sys

POLICIES = ("shared", "classes", "grants", "circuit")
PIECES = 3


def line(count):
    return {n: [m for m in (n - 1, n + 1) if 0 <= m < count] for n in range(count)}


def ring(count):
    return {n: [(n - 1) % count, (n + 1) % count] for n in range(count)}


def random_graph(count, rnd):
    """Connected: a random tree, and some more cables."""
    graph = {n: set() for n in range(count)}
    for n in range(1, count):
        m = rnd.randrange(n)
        graph[n].add(m)
        graph[m].add(n)
    for _ in range(count // 2):
        n, m = rnd.sample(range(count), 2)
        graph[n].add(m)
        graph[m].add(n)
    return {n: sorted(peers) for n, peers in graph.items()}


def route(graph, start, end):
    """The shortest one, as a list of nodes."""
    before = {start: None}
    queue = collections.deque([start])
    while queue:
        node = queue.popleft()
        for peer in graph[node]:
            if peer not in before:
                before[peer] = node
                queue.append(peer)
    nodes = [end]
    while nodes[-1] != start:
        nodes.append(before[nodes[-1]])
    return nodes[::-1]


class Model:
    """The memory of all relays, and the segments that wait for it."""

    def __init__(self, graph, policy, slots, circuits, rnd):
        self.policy, self.slots, self.rnd = policy, slots, rnd
        self.routes = [route(graph, a, b) for a in graph for b in graph
                       if a != b and b not in graph[a] for _ in range(circuits)]
        self.most = max((len(r) - 2 for r in self.routes), default=1)
        # Slots in use, by what owns them: (node), (node, class) or (node, circuit).
        self.used = collections.Counter()
        self.done = 0

    def owner(self, circuit, hop):
        nodes = self.routes[circuit]
        if self.policy == "circuit":
            return nodes[hop], circuit
        if self.policy == "classes":
            return nodes[hop], len(nodes) - 2 - hop
        return (nodes[hop],)

    def limit(self):
        return max(1, self.slots // self.most) if self.policy == "classes" else self.slots

    def is_free(self, circuit, hop):
        if hop == len(self.routes[circuit]) - 1:
            return True
        return self.used[self.owner(circuit, hop)] < self.limit()

    def take(self, circuit, hop):
        if hop < len(self.routes[circuit]) - 1:
            self.used[self.owner(circuit, hop)] += 1

    def give(self, circuit, hop):
        self.used[self.owner(circuit, hop)] -= 1


def run_slots(model, messages):
    """Segments take a slot when they come to a relay. True if all arrive."""
    todo = collections.Counter({c: messages for c in range(len(model.routes))})
    held = []  # (circuit, hop)
    while +todo or held:
        busy = {c for c, _ in held}
        moves = [(c, 0) for c in +todo if model.is_free(c, 1) and
                 not (model.policy == "circuit" and todo[c] % PIECES == 1 and c in busy)]
        moves += [s for s in held if model.is_free(s[0], s[1] + 1)]
        if not moves:
            return False
        circuit, hop = model.rnd.choice(moves)
        model.take(circuit, hop + 1)
        if hop:
            held.remove((circuit, hop))
            # The sender keeps a circuit's slots until the receiver has the segment.
            if model.policy != "circuit":
                model.give(circuit, hop)
        else:
            todo[circuit] -= 1
        if hop + 1 < len(model.routes[circuit]) - 1:
            held.append((circuit, hop + 1))
        elif model.policy == "circuit":
            for relay in range(1, hop + 1):
                model.give(circuit, relay)
    return True


def run_grants(model, messages):
    """
    Grants travel from the receiver to the sender and take a slot in each relay; the segment comes
    through those slots. A third of the circuits never send: their grants stay.
    """
    count = len(model.routes)
    idle = {c for c in range(count) if c % 3 == 2}
    grants = collections.Counter({c: messages for c in range(count)})
    passing = []  # (circuit, hop) of a grant that is at this relay
    left = messages * (count - len(idle))
    while left:
        moves = [(c, len(model.routes[c]) - 1) for c in +grants
                 if model.is_free(c, len(model.routes[c]) - 2)]
        moves += [g for g in passing if g[1] > 1 and model.is_free(g[0], g[1] - 1)]
        moves += [g for g in passing if g[1] == 1 and g[0] not in idle]
        if not moves:
            return False
        circuit, hop = model.rnd.choice(moves)
        if hop == 1:  # the sender has the grant: the segment passes through, and frees the slots
            passing.remove((circuit, 1))
            for relay in range(1, len(model.routes[circuit]) - 1):
                model.give(circuit, relay)
            left -= 1
            continue
        if hop == len(model.routes[circuit]) - 1:
            grants[circuit] -= 1
        else:
            passing.remove((circuit, hop))
        model.take(circuit, hop - 1)
        passing.append((circuit, hop - 1))
    return True


def deadlocks(graphs, policy, slots, circuits, messages, schedules):
    count = 0
    for seed in range(schedules):
        rnd = random.Random(seed)
        graph = graphs(rnd)
        model = Model(graph, policy, slots, circuits, rnd)
        run = run_grants if policy == "grants" else run_slots
        count += not run(model, messages)
    return count


SHAPES = {
    "ring 4": lambda rnd: ring(4),
    "ring 8": lambda rnd: ring(8),
    "line 5": lambda rnd: line(5),
    "line 6": lambda rnd: line(6),
    "random 6": lambda rnd: random_graph(6, rnd),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--schedules", type=int, default=6)
    parser.add_argument("--messages", type=int, default=6)
    args = parser.parse_args()
    table = {}
    for shape, graphs in SHAPES.items():
        for policy in POLICIES:
            slots = 1 if policy == "circuit" else 4
            table[shape, policy] = deadlocks(graphs, policy, slots, 2, args.messages,
                                             args.schedules)
        print("%-9s" % shape, "  ".join("%s %d" % (p, table[shape, p]) for p in POLICIES))
    unsafe = [key for key in table if key[1] in ("classes", "circuit") and table[key]]
    for key in unsafe:
        print("FAIL: %s with %s: %d of %d schedules end with segments that cannot move"
              % (*key, table[key], args.schedules))
    # The model must be able to show a deadlock, or the zeros above prove nothing.
    for policy in ("shared", "grants"):
        if not any(table[shape, policy] for shape in SHAPES):
            print("FAIL: no schedule deadlocks with '%s': the model is too kind" % policy)
            unsafe.append(policy)
    return 1 if unsafe else 0


if __name__ == "__main__":
    sys.exit(main())
