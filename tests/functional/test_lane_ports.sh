#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_lane_ports.sh - NCCL_MESH_PORTS has room for some lanes only: a comm has as many as both ends
# could open, and one line of each node says so.
# seconds: 5
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 64K --check-every 2 --sizes "8,64K" --iters 4 --repeat 1
	--verbose)
A_TO_B="wan:10.77.1.1>10.77.2.1@routed"
B_TO_A="wan:10.77.2.1>10.77.1.1@routed"

make_line() {
	mesh_node a b
	mesh_namespace_add "$(mesh_ns r)"
	mesh_link a wan 10.77.1.1/24 r ra 10.77.1.254/24
	mesh_link b wan 10.77.2.1/24 r rb 10.77.2.254/24
	mesh_forward r
	mesh_route a 10.77.2.0/24 10.77.1.254 wan
	mesh_route b 10.77.1.0/24 10.77.2.254 wan
}

# lines RUN RANK WORDS: how many lines of this rank match.
lines() { grep -cE -e "$3" "$OUT/$1/rank$2.out"; }

# took RUN LANES: both directions have so many paths.
took() {
	local lanes

	mapfile -t lanes < <(yes x | head -n "$2")
	expect_paths "$1" 0 1 "${lanes[@]/x/$A_TO_B}"
	expect_paths "$1" 1 0 "${lanes[@]/x/$B_TO_A}"
	expect_check
}

mesh_init
make_line
RANKS_ENV=(NCCL_MESH_DEBUG_LANES=6)
ranks_pass all a b -- "${RUN_ARGS[@]}"
took all 6
RANKS_ENV=(NCCL_MESH_DEBUG_LANES=6 NCCL_MESH_PORTS=40000-40003)
ranks_pass few a b -- "${RUN_ARGS[@]}" --channels 4
took few 3
for rank in 0 1; do
	(($(lines few $rank "NCCL_MESH_PORTS needs") == 1)) ||
		{ ranks_show "$OUT/few"; fail "rank $rank: not one line about the ports"; }
	(($(lines few $rank "warning.*NCCL_MESH_PORTS needs") == 0)) || fail "rank $rank warns"
done
note "of 6 lanes, 4 ports have room for 3: all bytes are right, and one line says so"
RANKS_ENV=(NCCL_MESH_DEBUG_LANES=6 NCCL_MESH_PORTS=40000-40001)
ranks_pass one a b -- "${RUN_ARGS[@]}"
took one 1
note "2 ports have room for one connection"
