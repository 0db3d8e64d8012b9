#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_line.sh - pairs without a cable, but with a common neighbour, reach each other through it:
# the ends of a line of three, the diagonals of a ring of four.
#
# The relay's own NCCL connects nothing in the second run: it relays from the plugin's init on.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# The pairs share the sizes: two of them have all.
ARGS=(--timeout 200 --check-every 2 --sizes "8,64K,1M" --iters 4 --repeat 1)
# Percent of what the cables carry that the management network may.
MANAGEMENT_MAX=1

# sent NODE NIC...: bytes that these NICs have sent, in one number.
sent() {
	local node=$1 nic sum=0

	for nic in "${@:2}"; do
		sum=$((sum + $(mesh_bytes "$node" "$nic" tx)))
	done
	echo "$sum"
}

# Both ends reach each other, the bytes are checked, and only cables carry data.
run_line() {
	local run=$1 mgmt cable

	shift
	mgmt=$(sent a mgmt0) cable=$(sent a ab)
	ranks_pass "$run" a b c -- "${ARGS[@]}" "$@"
	mgmt=$(($(sent a mgmt0) - mgmt)) cable=$(($(sent a ab) - cable))
	((mgmt * 100 < cable * MANAGEMENT_MAX)) ||
		fail "$run: a sent $mgmt bytes over the management network, $cable over the cable"
	said "$run" '"via": "b"'
}

test_line() {
	mesh_up line 3
	run_line all-pairs
	note "line of 3: all pairs, the ends through the node in the middle"
	run_line ends-only --pairs 0-2,2-0
	note "line of 3: the ends, while the relay's own NCCL connects nothing"
	run_line at-once --all-at-once --check-max 64K --check-every 6
	note "line of 3: all pairs at once"
}

# Without a relay there is no path: the setting, and a middle without a rank.
test_refused() {
	RANKS_ENV=(NCCL_MESH_RELAY=off)
	ranks_refuse off 60 'no common subnet' a b c -- "${ARGS[@]}" --pairs 0-2
	RANKS_ENV=()
	note "NCCL_MESH_RELAY=off: no common subnet"
	ranks_refuse lonely 60 'no common subnet' a c -- "${ARGS[@]}" --pairs 0-1
	note "no rank in the middle: no common subnet"
}

# Each rank relays for two others while it sends itself.
test_ring() {
	mesh_node d
	mesh_link c cd 10.77.3.1/24 d dc 10.77.3.2/24
	mesh_link d da 10.77.4.1/24 a ad 10.77.4.2/24
	ranks_pass ring a b c d -- "${ARGS[@]}" --all-at-once --check-max 64K --check-every 6
	said ring '"via": "[ac]"'
	said ring '"via": "[bd]"'
	warned ring 0
	note "ring of 4: all pairs at once, the diagonals through a neighbour"
}

# warned RUN TIMES: so often a rank warned about NCCL's ring.
warned() {
	(($(cat "$OUT/$1"/rank*.out | grep -c "follow each other in NCCL's ring") == $2)) ||
		{ ranks_show "$OUT/$1"; fail "run $1: not $2 warnings about the order"; }
}

# The ranks are not in the order of the cables: one of them warns, and names the order that is.
test_order() {
	ranks_pass order a c b d -- --timeout 200 --sizes 8 --iters 1 --repeat 1 \
		--pairs 0-1,1-2,2-3,3-0
	warned order 1
	said order "nodes a .rank 0. and c .rank 1. .* in the order a, b, c, d: then every step"
	note "ranks in another order: $(grep -hom1 'the nodes a .*' "$OUT"/order/*.out)"
}

mesh_init
test_line
test_refused
test_ring
test_order
