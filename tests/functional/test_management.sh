#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_management.sh - a management network as fast as the cables and without a default route is no
# cable, if NCCL_SOCKET_IFNAME names it.
# seconds: 10
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/functional/expect.sh
. "$here/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 16K --sizes "8,256K" --iters 10 --repeat 1)

mesh_init
mesh_up triangle
for node in a b c; do
	ip -n "$(mesh_ns $node)" route del default || fail "node $node has no default route"
	[[ $(on $node cat /sys/class/net/mgmt0/speed) == "$(on $node cat /sys/class/net/"$(
		[[ $node == a ]] && echo ab || echo ${node}a)"/speed)" ]] ||
		skip "the management network is not as fast as the cables"
done
RANKS_ENV=(NCCL_SOCKET_IFNAME==mgmt0)
on a env "${RANKS_ENV[@]}" "$MESH_BUILD/fi_mesh" nics >"$OUT/nics"
grep -q "NCCL_SOCKET_IFNAME names it" "$OUT/nics" || fail "$(cat "$OUT/nics")"
ranks_pass named a b c -- "${RUN_ARGS[@]}"
expect_paths named 0 1 "ab:10.77.1.1>10.77.1.2"
expect_paths named 1 0 "ba:10.77.1.2>10.77.1.1"
expect_paths named 1 2 "bc:10.77.2.1>10.77.2.2"
expect_paths named 2 1 "cb:10.77.2.2>10.77.2.1"
expect_paths named 2 0 "ca:10.77.3.1>10.77.3.2"
expect_paths named 0 2 "ac:10.77.3.2>10.77.3.1"
expect_check
note "NCCL_SOCKET_IFNAME names the management network: all six pairs, each on its own cable alone"
