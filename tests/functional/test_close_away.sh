#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_close_away.sh - NCCL closes a connection while the only cable is away, after it has seen that
# its small messages are sent: they arrive when the cable is back.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

FAULTS_ENV+=("NCCL_MESH_DEAD_PEER_TIMEOUT=20" "NCCL_MESH_RECOVERY_TIMEOUT=40")

# closes: plays a sender on a and a receiver on b; the last messages are lost when it returns.
closes() {
	rm -f "$FAULTS"/{handle,go,silent,sent,down,closing,closed}*
	play a sender <<-END
		$(meet connect 64K)
		transfer 0 4K 4 1
		touch $FAULTS/go.sender
		await $FAULTS/silent
		transfer 0 4K 8 2
		touch $FAULTS/sent
		await $FAULTS/down
		touch $FAULTS/closing
		drop 0
		touch $FAULTS/closed
	END
	play b receiver <<-END
		$(meet listen 64K)
		transfer 0 4K 4 1
		touch $FAULTS/go.receiver
		transfer 0 4K 8 2
		drop 0
	END
	arrives go.sender go.receiver
	silence b ba
	touch "$FAULTS/silent"
	arrives sent
}

arrived() {
	ended receiver
	ended sender
	unsaid sender WARN 'did not answer the end|may be lost'
	unsaid receiver WARN 'had ended a connection|failed'
	note "$1: all messages have arrived"
}

faults_init
mesh_up triangle

closes
mesh_carrier a ab down
wait_for "grep -q 'its messages wait for a path' $FAULTS/sender.log" $((10 * FAULTS_SLOW)) ||
	faults_show "the sender does not lose its link"
touch "$FAULTS/down"
arrives closing
pause 1
[[ ! -e $FAULTS/closed ]] || faults_show "the sender has closed without an answer"
silence_end b
mesh_carrier a ab up
arrived "the sender closes after it has lost its link"

# The link is lost while the close waits for its answer: after 3 s of silence.
closes
touch "$FAULTS/down"
wait_for "grep -Eq 'node b .* on ab ended: ' $FAULTS/sender.log" $((20 * FAULTS_SLOW)) ||
	faults_show "the sender does not lose its link"
[[ ! -e $FAULTS/closed ]] || faults_show "the sender has closed without an answer"
silence_end b
arrived "the sender closes before it has lost its link"
