# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# transfer.sh - one comm between two nodes that carries messages, every byte checked. To be sourced
# behind faults.sh.

# How long one command may take, in ms: emulated, on a busy machine.
TRANSFER_MS=120000

# For transfers in which nothing is to fail: a peer that is only slow is not lost.
# shellcheck disable=SC2034 # for the tests
TRANSFER_PATIENT=(
	NCCL_MESH_CONNECT_TIMEOUT=100 NCCL_MESH_ACCEPT_TIMEOUT=100 NCCL_MESH_DEAD_PEER_TIMEOUT=100
)

# transfer_start SIZE COUNT [ROOM]: node a sends, node b receives, into receives of ROOM bytes if
# that is more; both processes are under way.
transfer_start() {
	local size=$1 count=$2 room=${3:-$1}

	rm -f "$FAULTS"/{handle,connected}
	play b receiver <<-END
		limit $TRANSFER_MS
		init 0
		listen 0 $FAULTS/handle
		accept 0 0
		buffer 0 $room
		reg 0 0 0
		transfer_into 0 $size $count 1 $room
		dereg 0
		close 0
		close-listen 0
		finalize 0
	END
	play a sender <<-END
		limit $TRANSFER_MS
		init 0
		await $FAULTS/handle
		connect 0 $FAULTS/handle
		touch $FAULTS/connected
		buffer 0 $room
		reg 0 0 0
		transfer_into 0 $size $count 1 $room
		dereg 0
		close 0
		finalize 0
	END
}

# transfer SIZE COUNT [ROOM]: the same, and all has arrived.
transfer() {
	transfer_start "$@"
	ended sender
	ended receiver
}
