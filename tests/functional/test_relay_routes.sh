#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_routes.sh - routes of several relays: lines, rings, stars and random graphs, all pairs
# at once, every byte of the correctness matrix checked; and a ring whose ranks have another order.
#
#	SEED=N test_relay_routes.sh	that random graph
#	GRAPHS=20 test_relay_routes.sh	so many random graphs
#	ONLY=NAME test_relay_routes.sh	one part; by hand only: ring5, ring8, torus (3x3), idle
#
# Those by hand have eight connections for each direction of a pair, with 32 messages in flight on
# each, and little memory in the relays; idle is a line of five with services in the middle, where
# receives are posted meanwhile on connections that stay idle.
# seconds: 180
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

SEED=${SEED:-$((RANDOM))}
GRAPHS=${GRAPHS:-0}
# Each of the 20 and more pairs checks a fifth of the sizes, so that each size is with four pairs.
ARGS=(--timeout 250 --sizes "8,64K,1M" --iters 2 --repeat 1 --check-max 20K --check-every 5
	--all-at-once)

# relayed RUN FROM TO VIA: that pair's paths.
relayed() {
	grep -qE "path: from=$2 to=$3 .*via=$4 " "$OUT/$1"/rank*.out ||
		fail "$1: no path from $2 to $3 via $4: $(grep -hoE "from=$2 to=$3 .*via=[a-z,]*" \
			"$OUT/$1"/rank*.out | sort -u | paste -sd';')"
}

test_line() {
	mesh_node a b c d e
	mesh_cabled ab bc cd de
	ranks_pass line a b c d e -- "${ARGS[@]}" --verbose
	relayed line a e b,c,d
	relayed line e b d,c
	note "line of 5: through three relays"
}

test_ring() {
	mesh_node f g h i j k
	mesh_cabled fg gh hi ij jk kf
	ranks_pass ring f g h i j k -- "${ARGS[@]}" --verbose
	relayed ring f h g
	relayed ring f i '(g,h|k,j)'
	warned ring 0
	note "ring of 6: opposite nodes through two relays"
}

# warned RUN TIMES: so often a rank warned about NCCL's ring.
warned() {
	(($(cat "$OUT/$1"/rank*.out | grep -c "follow each other in NCCL's ring") == $2)) ||
		{ ranks_show "$OUT/$1"; fail "run $1: not $2 warnings about the order"; }
}

# The ranks are not in the order of the cables: one of them warns, and names the order that is.
test_order() {
	mesh_node w x y z
	mesh_cabled wx xy yz zw
	ranks_pass order w y x z -- --timeout 200 --sizes 8 --iters 1 --repeat 1 \
		--pairs 0-1,1-2,2-3,3-0
	warned order 1
	said order "nodes w .rank 0. and y .rank 1. .* in the order w, x, y, z: then every step"
	note "ranks in another order: $(grep -hom1 'the nodes w .*' "$OUT"/order/*.out)"
}

# The hub relays all pairs but its own.
test_star() {
	mesh_node l m n Z p # no cable is "lo"
	mesh_cabled lm ln lZ lp
	ranks_pass star l m n Z p -- "${ARGS[@]}" --verbose
	relayed star m p l
	note "star of 5: through the hub"
}

# Many messages in many circuits, by hand: a circuit of the smallest size has room for 16 of these.
# Larger ones take gigabytes of buffers in each rank.
FULL=(--timeout 800 --sizes "8,64K" --iters 8 --repeat 1 --check-max 8K --all-at-once
	--channels 8 --inflight 32)
FULL_TIMEOUT=900

# ring COUNT MEMORY: of nodes A, B, ...
ring() {
	local nodes=({A..Z}) i pairs=()

	nodes=("${nodes[@]:0:$1}")
	for ((i = 0; i < $1; i++)); do pairs+=("${nodes[i]}${nodes[(i + 1) % $1]}"); done
	mesh_node "${nodes[@]}"
	mesh_cabled "${pairs[@]}"
	RANKS_ENV=("NCCL_MESH_RELAY_MEMORY=$2")
	RANKS_TIMEOUT=$FULL_TIMEOUT
	ranks_pass "ring$1" "${nodes[@]}" -- "${FULL[@]}" --verbose
	RANKS_ENV=()
	note "ring of $1: $(sizes "ring$1")"
}

# sizes RUN: how many circuits had how much memory.
sizes() {
	grep -hoE 'relay: a circuit from .* [0-9]+ KiB' "$OUT/$1"/rank*.out |
		grep -oE '[0-9]+ KiB$' | sort | uniq -c | tr '\n' ' '
}

# 32 circuits lead through each node, 192 in the ring of 8: with the memory that is needed for as
# many of the smallest size, as far as that can be, and half as many more in the ring of 8, where
# pairs whose relay is slow to answer go the longer way. The answers of each pair have circuits as
# well.
test_ring5() { ring 5 48M; }

test_ring8() { ring 8 960M; }

test_torus() {
	local i nodes=({A..I}) pairs=()

	for i in {0..8}; do
		pairs+=("${nodes[i]}${nodes[i / 3 * 3 + (i + 1) % 3]}")
		pairs+=("${nodes[i]}${nodes[(i + 3) % 9]}")
	done
	mesh_node "${nodes[@]}"
	mesh_cabled "${pairs[@]}"
	RANKS_ENV=("NCCL_MESH_RELAY_MEMORY=400M")
	RANKS_TIMEOUT=$FULL_TIMEOUT
	ranks_pass torus "${nodes[@]}" -- "${FULL[@]}" --verbose
	RANKS_ENV=()
	note "torus of 3x3: $(sizes torus)"
}

# idle_script connect|listen: comms whose receives are posted long before anything is sent.
idle_script() {
	local i

	echo "limit 250000"
	echo "init 0"
	for i in {0..7}; do
		[[ $1 == listen ]] || echo "await $FAULTS/idle$i"
		[[ $1 == connect ]] || echo "listen $i $FAULTS/idle$i"
		[[ $1 == listen ]] && echo "accept $i $i" || echo "connect $i $FAULTS/idle$i"
		printf '%s\n' "buffer $i 1048576" "reg $i $i $i"
		[[ $1 == connect ]] || echo "post $i $i 0 1048576"
	done
	printf '%s\n' "touch $FAULTS/idle-$1" "await $FAULTS/over"
	for i in {0..7}; do
		[[ $1 == listen ]] || echo "post $i $i 0 1048576"
	done
	for i in {0..7}; do printf '%s\n' "test $i" "dereg $i" "close $i"; done
	echo "finalize 0"
}

test_idle() {
	mesh_node A B C D E
	mesh_cabled AB BC CD DE
	FAULTS_ENV=(MASTER_ADDR="$(mesh_mgmt_addr A)" MASTER_PORT=29500)
	serve B C D -- "${FAULTS_ENV[@]}" NCCL_MESH_RELAY_MEMORY=60M --relay
	play E listen < <(idle_script listen)
	play A connect < <(idle_script connect)
	arrives idle-listen idle-connect
	RANKS_TIMEOUT=$FULL_TIMEOUT
	ranks_pass idle A E -- "${FULL[@]}" --verbose
	said idle '"via": "B,C,D"'
	touch "$FAULTS/over"
	ended connect
	ended listen
	note "line of 5: eight idle connections with receives posted beside sixteen busy ones"
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
	mesh_cabled "${pairs[@]}"
	RANKS_ENV=("NCCL_MESH_RELAY_MEMORY=63M")
	ranks_pass random "${nodes[@]}" -- "${ARGS[@]}" --verbose --channels 1
	RANKS_ENV=()
	grep -qhE 'relay: a circuit from .* (1024|2048) KiB' "$OUT"/random/rank*.out ||
		fail "random: no circuit has less memory than usual"
	! grep -qh 'relay: a circuit from .* 4096 KiB' "$OUT"/random/rank*.out ||
		fail "random: a circuit has as much memory as usual"
	note "random graph ${pairs[*]} (SEED=$SEED)"
}

faults_init
if ((GRAPHS)); then
	for ((graph = 0; graph < GRAPHS; graph++)); do
		SEED=$((SEED + graph)) GRAPHS=0 ONLY=random "$0" || fail "graph $graph of $GRAPHS"
	done
	exit
fi
for part in ${ONLY:-line ring order star random}; do "test_$part"; done
