#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_many_circuits.sh - many comms over one relay, with the memory that it has by default: all of
# them connect and carry checked bytes. Messages whose segments are larger than the memory of their
# circuit arrive as well.
#
# LONG=1 tests/functional/test_many_circuits.sh: as many circuits as the memory is for, 2,048, over
# one relay, and nothing else: minutes.
# seconds: 60
# long: minutes of many comms; test_relay_crowd has 300 of them
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# Of each direction of a pair of ranks. Sanitizers need the memory for themselves.
CHANNELS=75
DIAGONAL=64
! slow || CHANNELS=20 DIAGONAL=20
[[ ! ${LONG:-} ]] || RANKS_TIMEOUT=3600
ARGS=(--all-at-once --timeout "$RANKS_TIMEOUT" --check-max 64K --check-every 40 --sizes 64K
	--iters 2 --repeat 1)

# Two ranks at each end of a line: 8 pairs, and a comm for the answers of each one.
test_line() {
	mesh_up line 3
	ranks_pass line a a b c c -- "${ARGS[@]}" --channels $CHANNELS \
		--pairs 0-3,0-4,1-3,1-4,3-0,3-1,4-0,4-1
	note "line of 3: $((8 * CHANNELS)) comms through one relay"
}

# Four ranks at each end: 32 pairs of 32 channels, each of which has a comm for the answers as well.
test_long_line() {
	local count

	mesh_up line 3
	ranks_pass long a a a a b c c c c -- "${ARGS[@]}" --verbose --channels 32 \
		--pairs "$(echo {0..3}-{5..8} {5..8}-{0..3} | tr ' ' ,)"
	count=$(grep -c 'relay: a circuit from node' "$OUT/long/rank4.out")
	((count >= 2048)) || fail "$count circuits led through the relay, not 2048"
	note "line of 3: $count circuits through one relay"
}

# 64 KiB is the size of a segment of 64 MiB. A relay with 1 MiB has 32 KiB for each circuit.
test_cut() {
	RANKS_ENV=(NCCL_MESH_RELAY_MEMORY=1M)
	ranks_pass cut a b c -- --verbose --all-at-once --timeout 300 --channels 1 --inflight 2 \
		--no-check --sizes 64M --iters 2 --repeat 1 --pairs 0-2,2-0
	said cut 'from node a to node c, .* 32 KiB'
	RANKS_ENV=()
	note "line of 3: messages of 64 MiB through circuits of 32 KiB"
}

# Each comm of a diagonal has a circuit in both relays.
test_ring() {
	mesh_node d
	mesh_link c cd 10.77.3.1/24 d dc 10.77.3.2/24
	mesh_link d da 10.77.4.1/24 a ad 10.77.4.2/24
	ranks_pass ring a b c d -- "${ARGS[@]}" --channels $DIAGONAL --pairs 0-2,2-0,1-3,3-1
	note "ring of 4: $((4 * DIAGONAL)) comms between nodes without a cable"
}

mesh_init
if [[ ${LONG:-} ]]; then
	test_long_line
	exit
fi
test_line
test_cut
test_ring
