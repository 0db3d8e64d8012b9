#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_recovery.sh - over verbs a comm goes on: over the other cable when one goes down, and over
# its only one when its packets pass again.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

MESSAGE_BYTES=$((4 << 20))

# firewall_prepare NODE NIC: before a transfer (test_network.sh).
firewall_prepare() {
	on "$1" tc qdisc replace dev "$2" root handle 1: prio || fail "tc qdisc"
	on "$1" tc qdisc add dev "$2" parent 1:3 netem loss 100% || fail "tc qdisc"
}

# firewall NODE NIC: drops what this NIC sends to RoCE's UDP port, and nothing else.
firewall() {
	on "$1" tc filter add dev "$2" parent 1: protocol ip u32 \
		match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:3 || fail "tc filter"
}

# moving NIC: waits until the device has sent some more.
moving() {
	local before

	before=$(rdma_counter "$1" sent_pkts)
	wait_for "((before + 500 < \$(rdma_counter $1 sent_pkts)))" 60 ||
		faults_show "$1 sends nothing"
}

# notices: the sender has lost a path, and messages are still to be sent.
notices() {
	wait_for "grep -q '^WARN .*lost node b' '$FAULTS/sender.log'" 60 ||
		faults_show "the sender does not notice that nothing arrives"
}

stream_ends() {
	stream_stop
	ended sender
	ended receiver
}

one_cable() {
	local env=("${FAULTS_ENV[@]}")

	FAULTS_ENV+=("NCCL_MESH_NICS==ab0,ba0")
	firewall_prepare a ab0
	stream_start $MESSAGE_BYTES
	moving ab0
	firewall a ab0
	notices
	on a tc filter del dev ab0 parent 1: || fail "tc filter del"
	stream_ends
	said sender WARN 'lost node b .*no RDMA write has been answered.*wait for a path'
	said sender WARN 'node b .*again: its messages go over this path'
	FAULTS_ENV=("${env[@]}")
	note "UDP 4791 dropped on the only cable, then passed: every byte is right"
}

two_cables() {
	local try

	for try in {1..4}; do
		((try < 4)) || faults_show "the comm does not use both cables"
		stream_start $MESSAGE_BYTES
		arrives connected
		! uses ab0 ab1 || break
		stream_ends
	done
	moving ab0
	moving ab1
	ip -n "${MESH_PREFIX}b" link set ba0 down
	notices
	moving ab1
	stream_ends
	said sender WARN 'lost node b .*go over the other paths now'
	note "one of two cables down: every byte is right"
}

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}" NCCL_MESH_RECOVERY_TIMEOUT=100)
faults_init
mesh_node a b
mesh_link a ab0 10.77.1.1/24 b ba0 10.77.1.2/24
mesh_link a ab1 10.77.2.1/24 b ba1 10.77.2.2/24
rdma_up
one_cable
two_cables
