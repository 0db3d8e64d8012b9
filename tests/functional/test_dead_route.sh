#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_dead_route.sh - the kernels have routes between two nodes, and the node between does not
# forward: they go over that node's process, as without the routes.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 100 --check-max 64K --check-every 2 --sizes "8,64K" --iters 4
	--repeat 1 --verbose
	--pairs "0-2,2-0")

mesh_init
mesh_up line 3
mesh_route a 10.77.2.0/24 10.77.1.2 ab
mesh_route c 10.77.1.0/24 10.77.2.1 cb
ranks_pass dead a b c -- "${RUN_ARGS[@]}"
said dead "path: from=a to=c nic=ab .* via=b "
said dead "path: from=c to=a nic=cb .* via=b "
said dead "the routes to node [ac] .*let nothing through for [0-9]+ ms: going over relays"
note "nothing comes through the routes: a and c go over b"

mesh_forward b
ranks_pass alive a b c -- "${RUN_ARGS[@]}" --pairs "0-2,2-0"
expect_cable alive 0 2 "ab:10.77.1.1" "cb:10.77.2.2" @routed
expect_check
! cat "$OUT"/alive/rank*.out | grep -E "going over relays" || fail "a route that works is not used"
note "now b forwards: a and c go by the routes"
