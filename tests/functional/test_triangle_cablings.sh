#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_triangle_cablings.sh - the cablings of a triangle, every dev: each pair on its own cable.
#
# Each node has eth1 and eth2; either may go to either neighbour, which makes 2^3 cablings, of which
# four differ by more than the names of the nodes; dev 0 is eth1. Each cable's two pairs run alone,
# so that the interfaces' counters can tell; then all pairs run together with each dev, and every
# byte is checked.
# seconds: 35
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

CABLES=(ab bc ca)
declare -A NIC    # NIC[xy]: the NIC of x that goes to y
declare -A RANK=([a]=0 [b]=1 [c]=2)
# The six pairs share the sizes.
RUN_ARGS=(--timeout 60 --check-max 8K --check-every 6 --sizes "8,256K" --iters 20 --repeat 1)
# 2 pairs x 20 messages x 256 KiB.
ENOUGH=$((10 << 20))

# cable NUMBER: bit 0, 1, 2 set: the NICs of a, b, c are the other way round.
cable() {
	local i cable x y bits=$1

	for i in 0 1 2; do
		x=${CABLES[i]:0:1} y=${CABLES[i]:1:1}
		NIC[$x$y]=eth$((1 + (bits >> RANK[$x] & 1)))
		NIC[$y$x]=eth$((2 - (bits >> RANK[$y] & 1)))
	done
	for i in 0 1 2; do
		cable=${CABLES[i]} x=${cable:0:1} y=${cable:1:1}
		mesh_link "$x" "${NIC[$x$y]}" "10.77.$((i + 1)).1/24" \
			"$y" "${NIC[$y$x]}" "10.77.$((i + 1)).2/24"
	done
}

uncable_all() {
	local cable

	for cable in "${CABLES[@]}"; do uncable "${cable:0:1}" "${NIC[$cable]}"; done
}

# Bytes on the cables in CABLES's order and on the management network.
cable_bytes() {
	local cable x y n sum=0 sums=()

	for cable in "${CABLES[@]}"; do
		x=${cable:0:1} y=${cable:1:1}
		sums+=($(($(bytes_sent "$x" "${NIC[$x$y]}") + $(bytes_sent "$y" "${NIC[$y$x]}"))))
	done
	for n in a b c; do sum=$((sum + $(bytes_sent $n mgmt0))); done
	echo "${sums[*]} $sum"
}

# cables_carry RUN INDICES BEFORE...: all that was sent since then went over these cables, and each
# of them carried its messages.
cables_carry() {
	local run=$1 own=$2 now i total=0 good=0

	shift 2
	read -ra now <<<"$(cable_bytes)"
	for i in 0 1 2 3; do
		now[i]=$((now[i] - $1))
		total=$((total + now[i]))
		shift
	done
	for i in $own; do
		good=$((good + now[i]))
		((now[i] >= ENOUGH)) ||
			fail "run $run: cable ${CABLES[i]} carried ${now[i]} bytes (${now[*]})"
	done
	((good * 100 >= total * 98)) ||
		fail "run $run: its cables carried $good of $total bytes (${now[*]})"
}

# run_cables RUN INDICES ARGUMENT...: the pairs of some cables, alone.
run_cables() {
	local run=$1 own=$2 i x y before pairs=()

	shift 2
	for i in $own; do
		x=${CABLES[i]:0:1} y=${CABLES[i]:1:1}
		pairs+=("${RANK[$x]}-${RANK[$y]}" "${RANK[$y]}-${RANK[$x]}")
		expect_paths "$run" "${RANK[$x]}" "${RANK[$y]}" \
			"${NIC[$x$y]}:10.77.$((i + 1)).1>10.77.$((i + 1)).2"
		expect_paths "$run" "${RANK[$y]}" "${RANK[$x]}" \
			"${NIC[$y$x]}:10.77.$((i + 1)).2>10.77.$((i + 1)).1"
	done
	read -ra before <<<"$(cable_bytes)"
	ranks_pass "$run" a b c -- "${RUN_ARGS[@]}" --pairs "$(IFS=,; echo "${pairs[*]}")" "$@"
	cables_carry "$run" "$own" "${before[@]}"
}

# Without --dev the two channels of a pair ask for the two NICs.
run_cabling() {
	local i dev

	cable "$1"
	for i in 0 1 2; do
		slow || run_cables "cabling$1-${CABLES[i]}" "$i" --no-check
	done
	for dev in 0 1; do
		run_cables "cabling$1-dev$dev" "0 1 2" --dev "$dev" --all-at-once
	done
	uncable_all
	note "cabling $1: a(${NIC[ab]} ${NIC[ac]}) b(${NIC[ba]} ${NIC[bc]})" \
		"c(${NIC[ca]} ${NIC[cb]}): own cables, each dev"
}

mesh_init
mesh_node a b c
for number in 0 1 3 7; do run_cabling "$number"; done
expect_check
