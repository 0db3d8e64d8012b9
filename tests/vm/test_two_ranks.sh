#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_two_ranks.sh - two processes of each node share its NICs over verbs, and send in opposite
# directions: each closes its own endpoint when a link is lost, and goes on, over the other cable
# or when its packets pass again.
# seconds: 90
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

MESSAGE_BYTES=$((1 << 20))

# pair_start N FROM TO: a process of node FROM streams to one of node TO until pairs_end.
pair_start() {
	local n=$1

	play "$3" "receiver$n" <<-END
		limit $TRANSFER_MS
		accepts 0 $FAULTS/handle$n $MESSAGE_BYTES
		stream 0 $MESSAGE_BYTES $FAULTS/enough 1
		drop 0
		close-listen 0
	END
	play "$2" "sender$n" <<-END
		limit $TRANSFER_MS
		connects 0 $FAULTS/handle$n
		touch $FAULTS/connected$n
		room 0 $MESSAGE_BYTES
		stream 0 $MESSAGE_BYTES $FAULTS/enough 1
		drop 0
	END
}

pairs_start() {
	rm -f "$FAULTS"/{handle,connected}[12] "$FAULTS/enough"
	pair_start 1 a b
	pair_start 2 b a
	arrives connected1 connected2
}

pairs_end() {
	touch "$FAULTS/enough"
	ended sender1
	ended sender2
	ended receiver1
	ended receiver2
}

# pair_uses N NIC...: the pair's comm has a path over each of them. A cable over which RDMA answers
# two seconds later than over the other one is left out, which happens on a busy machine.
pair_uses() {
	local log=$FAULTS/sender$1.log nic

	for nic in "${@:2}"; do grep -q " path: .* nic=$nic " "$log" || return; done
}

# shares NIC OTHER: NIC sends a sixteenth at least of what OTHER does, the node's other one: the
# plugin gives more to whichever is faster at the moment, and the emulation is uneven.
shares() {
	local sent

	sent=$(rdma_counter "$1" sent_pkts)
	rdma_moving "$2" 8000
	sent=$(($(rdma_counter "$1" sent_pkts) - sent))
	((sent >= 500)) || faults_show "$1 has sent $sent packets only, $2 8000"
	note "$1 has sent $sent packets while $2 sent 8000"
}

# both_say LEVEL REGEX: each sender says that.
both_say() {
	local n

	for n in 1 2; do
		wait_for "grep -Eq '^$1 .*($2)' '$FAULTS/sender$n.log'" 100 ||
			faults_show "sender$n did not say: $1 $2"
	done
}

one_cable() {
	local env=("${FAULTS_ENV[@]}") nic

	FAULTS_ENV+=("NCCL_MESH_NICS==ab0,ba0")
	for nic in ab0 ba0; do roce_prepare ${nic:0:1} $nic; done
	pairs_start
	rdma_moving ab0
	rdma_moving ba0
	for nic in ab0 ba0; do roce_drop ${nic:0:1} $nic; done
	both_say WARN 'lost node [ab] .*wait for a path'
	# The first end to notice says how; the other one may be told.
	grep -Eqs '^WARN .*lost node [ab] .*no RDMA write has been answered.*wait for a path' \
		"$FAULTS"/sender{1,2}.log || faults_show 'neither end has noticed it by its writes'
	for nic in ab0 ba0; do roce_pass ${nic:0:1} $nic; done
	both_say WARN 'node [ab] .*again: its messages go over this path'
	pairs_end
	FAULTS_ENV=("${env[@]}")
	note "UDP 4791 dropped on the only cable, then passed: every byte of both pairs is right"
}

two_cables() {
	local try

	for try in {1..4}; do
		((try < 4)) || faults_show "a comm does not use both cables"
		pairs_start
		pair_uses 1 ab0 ab1 && pair_uses 2 ba0 ba1 && break
		pairs_end
	done
	shares ab0 ab1
	shares ab1 ab0
	shares ba0 ba1
	shares ba1 ba0
	ip -n "${MESH_PREFIX}b" link set ba0 down
	both_say WARN 'lost node [ab] .*go over the other paths now'
	rdma_moving ab1
	rdma_moving ba1
	pairs_end
	note "one of two cables down: every byte of both pairs is right"
}

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}" NCCL_MESH_RECOVERY_TIMEOUT=100)
faults_init
mesh_node a b
mesh_link a ab0 10.77.1.1/24 b ba0 10.77.1.2/24
mesh_link a ab1 10.77.2.1/24 b ba1 10.77.2.2/24
rdma_up
one_cable
two_cables
