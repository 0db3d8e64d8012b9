#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_abort.sh - NCCL aborts: comms are closed in the middle of messages, while the process at the
# other end is stopped, or all cables to it are lost. That waits for nobody, however many comms
# there are and whatever the timeouts.
# seconds: 10
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

COMMS=8
# Far below NCCL_MESH_DEAD_PEER_TIMEOUT, of which one wait would be enough.
SOON=10000
FAULTS_ENV+=("NCCL_MESH_DEAD_PEER_TIMEOUT=60" "NCCL_MESH_RECOVERY_TIMEOUT=100"
	"NCCL_MESH_CONNECT_TIMEOUT=60" "NCCL_MESH_ACCEPT_TIMEOUT=60" "MASTER_ADDR=127.0.0.1"
	"MASTER_PORT=29500")

# open_all FROM connects|accepts NAME: comms FROM, FROM + 1 ... in turns in either direction, with
# their buffers. The last two had a message, and are idle; the others have one that does not end.
open_all() {
	local i n way

	for ((i = 0; i < COMMS; i++)); do
		n=$(($1 + i))
		way=$2
		((i % 2)) || way=$([[ $2 == accepts ]] && echo connects || echo accepts)
		printf '%s\n' "$way $n $FAULTS/handle.$3.$i 4M" "transfer $n 64K 2 $n"
	done
}

post_all() {
	local i

	for ((i = $1; i < $1 + COMMS - 2; i++)); do echo "post $i $i 0 4M"; done
}

# play_all: in node a a process with comms to c only, and in c one that does nothing more.
play_all() {
	local i

	rm -f "$FAULTS"/{handle.*,ready,posted,gone}
	play c far < <(
		open_all 0 accepts ac
		printf '%s\n' "touch $FAULTS/ready" "limit 300000" "await $FAULTS/never"
	)
	play a near < <(
		open_all 0 connects ac
		post_all 0
		printf '%s\n' "touch $FAULTS/posted" "await $FAULTS/gone"
		for ((i = 0; i < COMMS; i++)); do echo "drop $i"; done
		printf '%s\n' "finalize 0" "touch $FAULTS/closed"
	)
	arrives ready posted
}

# aborts WHAT: a closes everything.
aborts() {
	local began=$SECONDS

	touch "$FAULTS/gone"
	ended near
	((SECONDS - began <= SOON * FAULTS_SLOW / 1000)) ||
		faults_show "$1: the abort took $((SECONDS - began)) s"
	note "$1: $((2 * COMMS)) calls and finalize take $((SECONDS - began)) s"
	signal far KILL
	ended far 137
}

faults_init
mesh_up triangle patched
play_all
signal far STOP
aborts "the peer is stopped"
play_all
mesh_unplug a ac
mesh_unplug b bc
aborts "all cables of the peer are out"
