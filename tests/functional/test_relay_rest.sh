#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_rest.sh - the node behind a relay is stopped, with writes to it in flight, while the
# cable on the other side of the relay is away for a moment. That link is used again at once: the
# comms between the sender and the relay's node go on. The comm with the node that was stopped goes
# on when it runs again.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

faults_init
FAULTS_ENV+=(
	"MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_RECOVERY_TIMEOUT=30"
	"NCCL_MESH_DEAD_PEER_TIMEOUT=60"
)
mesh_up line 3
play c receiver <<-END
	$(meet listen 8M)
	post 0 0 0 8M
	stop
	test 0
	close 0
END
play b relay <<-END
	accepts 1 $FAULTS/handle.direct 1M
	transfer 1 60000 8 3
	transfer 1 60000 8 4
	await $FAULTS/over
	close 1
END
play a sender <<-END
	connects 1 $FAULTS/handle.direct 1M
	$(meet connect 8M)
	transfer 1 60000 8 3
	await $FAULTS/stopped
	post 0 0 0 8M
	pending 0 1000
	touch $FAULTS/stuck
	await $FAULTS/returned
	transfer 1 60000 8 4
	touch $FAULTS/moved
	test 0
	close 0
	close 1
	touch $FAULTS/over
END
stands receiver
touch "$FAULTS/stopped"
arrives stuck
mesh_carrier a ab down
wait_for "grep -q '^WARN .* lost node b' $FAULTS/sender.log" 60 || faults_show "no path is lost"
mesh_carrier a ab up
touch "$FAULTS/returned"
arrives moved
note "comms beside the stopped node's go on: $(grep -ho 'WARN .* back.*' "$FAULTS/sender.log" |
	head -1 | cut -c1-150)"
signal receiver CONT
ended receiver
ended sender
ended relay
