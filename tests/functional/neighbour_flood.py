#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stranger on a link that floods the neighbours' port with answers: forged, replayed, oversized,
truncated, and forged ones with the token of a question that it has heard.

usage: neighbour_flood.py NETDEV PER_SECOND VICTIM...

VICTIM is an IPv6 link-local address. Prints one JSON line a second: what was sent so far.
"""
import itertools
import json
import os
import random
import socket
import struct
import sys
import time

PORT, HOPS = 18621, 255
QUESTION, ANSWER = 1, 2
# struct mesh_neighbour up to its processes (src/wire/neighbour.h).
HEAD = struct.Struct("<IBBH24s64sBBBBHBBQQQII16s16s160s")
assert HEAD.size == 328
TOKEN = 112


def datagram(kind, token=None):
    """A well-made one of a node that does not exist."""
    node = random.getrandbits(63)
    addr = struct.pack("<BBH16s", 4, 24, 0, bytes([10, 81, 1, random.randrange(3, 250)]))
    process = struct.pack("<QQHBBI", node, 0, 4711, 1, 1, 0)
    token = random.getrandbits(63) if token is None else token
    return HEAD.pack(0x524E434D, 1, kind, HEAD.size + len(process), b"9.9",
                     b"forged%d" % (node % 999), 1, 0, 1, 1, 1, 8, 0, node, token, 0, 1500, 1000,
                     b"eth%d" % (node % 99), b"", addr) + process


def sockets(netdev):
    """One that sends, and one that hears the questions of others."""
    sending, hearing = (socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) for _ in range(2))
    for option in socket.IPV6_UNICAST_HOPS, socket.IPV6_MULTICAST_HOPS:
        sending.setsockopt(socket.IPPROTO_IPV6, option, HOPS)
    hearing.bind(("::", PORT))
    hearing.setblocking(False)
    return sending, hearing, socket.if_nametoindex(netdev)


def main():
    netdev, rate, victims = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    sending, hearing, scope = sockets(netdev)
    asked = {}  # (address, port) of a question: its token
    replayed = [datagram(ANSWER)]
    sent = dict.fromkeys(("forged", "replayed", "oversized", "truncated", "question", "token"), 0)

    def send(kind, data, address, port):
        try:
            sending.sendto(data, (address, port, 0, scope))
            sent[kind] += 1
        except OSError:
            pass  # a full queue of the NIC

    def hear():
        try:
            data, (address, port, _, _) = hearing.recvfrom(65536)
        except BlockingIOError:
            return
        if len(data) >= HEAD.size and data[5] == QUESTION and port != PORT:
            asked[address, port] = struct.unpack_from("<Q", data, TOKEN)[0]
            replayed.append(data[:5] + bytes([ANSWER]) + data[6:])

    began = time.monotonic()
    told = began
    for number in itertools.count():
        address = victims[number // 10 % len(victims)]
        kind = number % 10
        if kind < 3:
            send("forged", datagram(ANSWER), address, PORT)
        elif kind < 5:
            send("replayed", replayed[-1 - number % min(len(replayed), 8)], address, PORT)
        elif kind == 5:
            send("oversized", datagram(ANSWER) + os.urandom(random.randrange(1000, 5000)), address,
                 PORT)
        elif kind == 6:
            send("truncated", datagram(ANSWER)[:random.randrange(352)], address, PORT)
        elif kind == 7:
            send("question", datagram(QUESTION), address, PORT)
        else:
            hear()
            for (to, port), token in list(asked.items())[-4:]:
                send("token", datagram(ANSWER, token), to, port)
        now = time.monotonic()
        if now > told + 1:
            print(json.dumps(dict(sent, seconds=round(now - began, 1))), flush=True)
            told = now
        if (ahead := began + number / rate - now) > 0.002:
            time.sleep(ahead)


main()
