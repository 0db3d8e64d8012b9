#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_ranks.sh - several ranks on a node, and several communicators in a process.
# seconds: 10
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 16K --check-every 2 --sizes "8,256K" --iters 10 --repeat 1)
COMMUNICATORS=$MESH_BUILD/functional/two_communicators

# Two ranks share a's NIC and address; the ports tell them apart.
test_two_beside_one() {
	local args

	for args in one-by-one --all-at-once; do
		ranks_pass "aab$args" a a b -- "${RUN_ARGS[@]}" ${args/one-by-one/}
		expect_paths "aab$args" 0 1 "ab:10.77.1.1>10.77.1.1"
		expect_paths "aab$args" 1 0 "ab:10.77.1.1>10.77.1.1"
		for rank in 0 1; do
			expect_paths "aab$args" $rank 2 "ab:10.77.1.1>10.77.1.2"
			expect_paths "aab$args" 2 $rank "ba:10.77.1.2>10.77.1.1"
		done
	done
	note "two ranks on one node beside one on another"
}

test_two_beside_two() {
	local x y

	ranks_pass aabb a a b b -- "${RUN_ARGS[@]}" --all-at-once
	for x in 0 1 2 3; do
		for y in 0 1 2 3; do
			((x == y)) || expect_paths aabb $x $y \
				"*:10.77.1.$((1 + x / 2))>10.77.1.$((1 + y / 2))"
		done
	done
	note "two ranks on each of two nodes, all pairs at once"
}

test_one_node_only() {
	ranks_pass aa a a -- "${RUN_ARGS[@]}"
	expect_paths aa 0 1 "ab:10.77.1.1>10.77.1.1"
	expect_paths aa 1 0 "ab:10.77.1.1>10.77.1.1"
	note "both ranks on one node"
}

# run_communicators RUN [VARIABLE=VALUE]: one process in each node. Statuses in STATUS.
run_communicators() {
	local run=$1 node rank=0 pids=() pid

	shift
	mkdir -p "$OUT/$run"
	for node in a b; do
		mesh_spawn "$node" "$OUT/$run/rank$rank.out" env "$@" \
			timeout -k 5 "$RANKS_TIMEOUT" \
			"$COMMUNICATORS" "$MESH_BUILD/libnccl-net-mesh.so" "$OUT/$run" $rank
		pids+=("$MESH_SPAWNED")
		((rank++))
	done
	STATUS=()
	for pid in "${pids[@]}"; do
		wait "$pid"
		STATUS+=($?)
	done
}

test_two_communicators() {
	run_communicators two
	[[ ${STATUS[*]} == "0 0" ]] || { cat "$OUT"/two/*.out; fail "communicators: ${STATUS[*]}"; }
	cat "$OUT"/two/*.out
	# The same with one wrong bit: does the check look?
	run_communicators wrong TWO_COMMUNICATORS_FAULT=1
	[[ ${STATUS[*]} == "1 1" ]] || fail "a wrong bit was not seen: ${STATUS[*]}"
	grep -q 'is wrong' "$OUT"/wrong/rank*.out || fail "no message names the wrong byte"
	note "two communicators in one process, four threads; a wrong bit is seen"
}

[[ -x $COMMUNICATORS ]] || skip "$COMMUNICATORS is not built"
mesh_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
mesh_link a ab2 10.77.2.1/24 b ba2 10.77.2.2/24
test_two_communicators
uncable a ab2
# ThreadSanitizer looks for races between communicators: fabric_pingpong has one, as elsewhere.
[[ $MESH_BUILD != *thread* ]] || exit 0
for t in two_beside_one two_beside_two one_node_only; do "test_$t"; done
expect_check
