#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_network.sh - a network that is not as RDMA needs it: loss, delay, a firewall, other MTUs.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

MESSAGE_BYTES=$((1 << 20))
# Seconds after which a broken link has to be an error: RDMA retries seven times for half a second
# and the connect timeout is 15 s; with slack for a busy machine.
BOUND=60

qdisc() { ip netns exec "$MESH_PREFIX$1" tc qdisc "${@:2}" || fail "tc qdisc ${*:2}"; }

# Losses that the devices saw and repaired.
repaired() {
	local nic sum=0 name

	for nic in ab ba; do
		for name in duplicate_request out_of_seq_request rcvd_seq_err \
			completer_retry_err; do
			((sum += $(rdma_counter $nic $name)))
		done
	done
	echo $sum
}

loss_and_delay() {
	local before after

	qdisc a add dev ab root netem loss 0.5% delay 1ms
	qdisc b add dev ba root netem loss 0.5% delay 1ms
	before=$(repaired)
	transfer $MESSAGE_BYTES 16
	after=$(repaired)
	((after > before)) || fail "nothing was lost"
	note "0.5% lost, 1 ms delay: every byte is right; the devices repaired $((after - before))"
	qdisc a del dev ab root
	qdisc b del dev ba root
}

# both_fail CASE WORDS: the transfer under way ends with errors on both sides, in time.
both_fail() {
	local started=$SECONDS

	wait_for "! kill -0 ${FAULTS_PID[sender]} 2>/dev/null" $BOUND ||
		faults_show "$1: the sender does not end"
	wait_for "! kill -0 ${FAULTS_PID[receiver]} 2>/dev/null" $BOUND ||
		faults_show "$1: the receiver does not end"
	ended sender 1
	ended receiver 1
	said sender WARN "$2"
	note "$1 ($((SECONDS - started)) s):" \
		"$(grep -hE "^WARN .*($2)" "$FAULTS/sender.log" | head -1)"
}

firewall_from_the_start() {
	roce_drop a ab
	transfer_start $MESSAGE_BYTES 4
	both_fail "UDP 4791 dropped" 'gave up connecting from ab .* to node b'
	roce_pass a ab
}

# A device repeats what is not answered. Hardware gives up after seven times; soft-RoCE, asked for
# seven as libfabric does, never: so the transfer goes on when the packets pass again, before the
# plugin's own deadline.
firewall_for_a_while() {
	local repeats env=("${FAULTS_ENV[@]}")

	FAULTS_ENV+=("NCCL_MESH_DEAD_PEER_TIMEOUT=60")
	stream_start $((8 << 20))
	arrives connected
	rdma_moving ab 2000
	roce_drop a ab
	repeats=$(rdma_counter ab completer_retry_err)
	wait_for "(($repeats + 4 < \$(rdma_counter ab completer_retry_err)))" 60 ||
		faults_show "nothing is repeated"
	roce_pass a ab
	stream_stop
	ended sender
	ended receiver
	FAULTS_ENV=("${env[@]}")
	note "UDP 4791 dropped for a while, then passed again: every byte is right"
}

firewall_for_good() {
	stream_start $((8 << 20))
	arrives connected
	rdma_moving ab 2000
	roce_drop a ab
	both_fail "UDP 4791 dropped in mid-transfer" 'lost node b .*no RDMA write has been answered'
	said receiver WARN 'lost node a .*RDMA writes were not answered'
	roce_pass a ab
}

faults_init
pair_up
loss_and_delay
roce_prepare a ab
firewall_from_the_start
firewall_for_a_while
firewall_for_good
qdisc a del dev ab root
transfer $MESSAGE_BYTES 4
note "and all is well again"
