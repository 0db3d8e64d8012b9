#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_routes.sh - routes of several relays: lines, rings, stars and random graphs, all pairs
# at once, every byte of the correctness matrix checked.
#
#	SEED=N test_relay_routes.sh	that random graph
#	GRAPHS=20 test_relay_routes.sh	so many random graphs
# seconds: 180
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/functional/expect.sh
. "$here/expect.sh"

SEED=${SEED:-$((RANDOM))}
GRAPHS=${GRAPHS:-0}
ARGS=(--timeout 250 --sizes "8,64K,1M" --iters 2 --repeat 1 --check-max 20K --all-at-once)
NUMBER=0

# cable X Y
cable() {
	NUMBER=$((NUMBER + 1))
	mesh_link "$1" "${1}x$2" "10.78.$NUMBER.1/24" "$2" "${2}x$1" "10.78.$NUMBER.2/24"
}

# cabled NODE...: pairs "xy" as cables.
cabled() {
	local pair

	for pair; do cable "${pair:0:1}" "${pair:1:1}"; done
}

# relayed RUN FROM TO VIA: that pair's paths.
relayed() {
	grep -qE "path: from=$2 to=$3 .*via=$4 " "$OUT/$1"/rank*.out ||
		fail "$1: no path from $2 to $3 via $4: $(grep -hoE "from=$2 to=$3 .*via=[a-z,]*" \
			"$OUT/$1"/rank*.out | sort -u | paste -sd';')"
}

test_line() {
	mesh_node a b c d e
	cabled ab bc cd de
	ranks_pass line a b c d e -- "${ARGS[@]}" --verbose
	relayed line a e b,c,d
	relayed line e b d,c
	note "line of 5: through three relays"
}

test_ring() {
	mesh_node f g h i j k
	cabled fg gh hi ij jk kf
	ranks_pass ring f g h i j k -- "${ARGS[@]}" --verbose
	relayed ring f h g
	relayed ring f i '(g,h|k,j)'
	note "ring of 6: opposite nodes through two relays"
}

# The hub relays all pairs but its own.
test_star() {
	mesh_node l m n o p
	cabled lm ln lo lp
	ranks_pass star l m n o p -- "${ARGS[@]}" --verbose
	relayed star m p l
	note "star of 5: through the hub"
}

# random_pairs: a random connected graph of these nodes, each with two to four cables, as pairs.
random_pairs() {
	local nodes=("$@") x y tries
	local -A cables=() used=()

	pair() {
		cables[$1]=$((${cables[$1]:-0} + 1))
		cables[$2]=$((${cables[$2]:-0} + 1))
		used[$1$2]=1 used[$2$1]=1
		echo "$1$2"
	}
	for ((x = 1; x < $#; x++)); do
		while y=$((RANDOM % x)); ((${cables[${nodes[y]}]:-0} >= 4)); do :; done
		pair "${nodes[y]}" "${nodes[x]}"
	done
	for x in "${nodes[@]}"; do
		for ((tries = 0; tries < 50 && cables[$x] < 2; tries++)); do
			y=${nodes[RANDOM % $#]}
			[[ $y != "$x" && ! ${used[$x$y]:-} ]] && ((cables[$y] < 4)) &&
				pair "$x" "$y"
		done
	done
}

# With so little memory circuits have a half or a quarter of the usual piece.
test_random() {
	local nodes=(q r s t u v) pairs

	RANDOM=$SEED
	mapfile -t pairs < <(random_pairs "${nodes[@]}")
	mesh_node "${nodes[@]}"
	cabled "${pairs[@]}"
	RANKS_ENV=("NCCL_MESH_RELAY_MEMORY=63M")
	ranks_pass random "${nodes[@]}" -- "${ARGS[@]}" --verbose --channels 1
	RANKS_ENV=()
	grep -qhE 'relay: a circuit from .* (1024|2048) KiB' "$OUT"/random/rank*.out ||
		fail "random: no circuit has less memory than usual"
	! grep -qh 'relay: a circuit from .* 4096 KiB' "$OUT"/random/rank*.out ||
		fail "random: a circuit has as much memory as usual"
	note "random graph ${pairs[*]} (SEED=$SEED)"
}

mesh_init
if ((GRAPHS)); then
	for ((graph = 0; graph < GRAPHS; graph++)); do
		SEED=$((SEED + graph)) GRAPHS=0 ONLY=random "$0" || fail "graph $graph of $GRAPHS"
	done
	exit
fi
if [[ ! ${ONLY:-} ]]; then
	test_line
	test_ring
	test_star
fi
test_random
