#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_ranks.sh - several ranks on a node, and several communicators in a process.
# seconds: 10
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 16K --check-every 2 --sizes "8,256K" --iters 10 --repeat 1)

# Two ranks share a's NIC and address; the ports tell them apart.
test_two_beside_one() {
	local args

	for args in one-by-one --all-at-once; do
		ranks_pass "aab$args" a a b -- "${RUN_ARGS[@]}" ${args/one-by-one/}
		expect_cable "aab$args" 0 1 "ab:10.77.1.1" "ab:10.77.1.1"
		for rank in 0 1; do
			expect_cable "aab$args" $rank 2 "ab:10.77.1.1" "ba:10.77.1.2"
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
	expect_cable aa 0 1 "ab:10.77.1.1" "ab:10.77.1.1"
	note "both ranks on one node"
}

# communicators ME OTHER SEED [DEVICE]: the script of a process with two of them, of which 1
# outlives 0, and moves data until that has ended at both. Each has a context and, as in NCCL, a
# comm each way, which threads set up and move data on at once. Comms 0 and 2 send. SEED is that of
# the last message of communicator 1, and DEVICE its device.
communicators() {
	cat <<-END
		limit 60000
		thread 1 init 0
		thread 2 init 1
		$(printf 'join %d\n' 1 2)
		use 0
		listen 0 $FAULTS/handle.0.$1
		use 1
		device ${4:-0}
		listen 1 $FAULTS/handle.1.$1
		await $FAULTS/handle.1.$2
		thread 1 connect 2 $FAULTS/handle.1.$2
		thread 2 accept 3 1
		use 0
		thread 3 connect 0 $FAULTS/handle.0.$2
		thread 4 accept 1 0
		$(printf 'join %d\n' 1 2 3 4)
		$(printf 'room %d 256K poison\n' 0 1 2 3)
		thread 1 transfer 0 199999 300 $1
		thread 2 transfer 1 199999 300 $2
		thread 3 stream 2 5000 $FAULTS/over.$1 $1
		thread 4 stream 3 5000 none $2
		$(printf 'join %d\n' 1 2)
		drop 0 1
		close-listen 0
		finalize 0
		touch $FAULTS/over.$1
		$(printf 'join %d\n' 3 4)
		transfer 2 129 1 $3
		transfer 3 129 1 9
		drop 2 3
		close-listen 1
		finalize 1
	END
}

test_two_communicators() {
	play a left < <(communicators 1 2 9)
	play b right < <(communicators 2 1 9)
	ended left
	ended right
	# The same with a message that is wrong: does the check look?
	rm -f "$FAULTS"/{handle,over}*
	play a left < <(communicators 1 2 8)
	play b right < <(communicators 2 1 9)
	ended right 1
	ended left
	grep -q '^WRONG: ' "$FAULTS/right.log" || faults_show "no message names the wrong byte"
	note "two communicators in one process, four threads; a wrong message is seen"
}

# Each has a cable of its own then.
test_two_devices() {
	FAULTS_ENV+=(NCCL_MESH_DEBUG_MAX_PATHS=1)
	rm -f "$FAULTS"/{handle,over}*
	mesh_link a ax 10.77.2.1/24 b bx 10.77.2.2/24
	play a left < <(communicators 1 2 9 1)
	play b right < <(communicators 2 1 9 1)
	ended left
	ended right
	for nic in ab ax; do
		(($(grep -c " path: .* nic=$nic " "$FAULTS/left.log") == 2)) ||
			faults_show "not one comm each way over $nic"
	done
	note "two communicators on two devices"
}

faults_init
mesh_node a b
# One cable: what a peer writes over a second one is ordered by the peer only, and ThreadSanitizer
# knows of no order between the thread that posted the receive and the one whose poll brings it.
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
test_two_communicators
# ThreadSanitizer looks for races between communicators: fabric_pingpong has one, as elsewhere.
[[ $MESH_BUILD != *thread* ]] || exit 0
for t in two_beside_one two_beside_two one_node_only two_devices; do "test_$t"; done
expect_check
