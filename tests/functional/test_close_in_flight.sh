#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_close_in_flight.sh - deregMr, close and finalize with operations in flight, in any order, as
# NCCL does when it aborts: each returns in bounded time, and nothing lands in memory that NCCL has
# back, while the peer goes on.
# seconds: 45
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# A close waits for a peer for NCCL_MESH_DEAD_PEER_TIMEOUT (3 s) twice at most, then cuts it off.
BOUND=12000

begin() {
	CASE=$1
	rm -f "$FAULTS"/{handle,go,ready,closed}*
}

# let_go COMMAND...: each within the bound.
let_go() { printf '%s\n' "${@/#/within $(ms $BOUND) }"; }

# finish: no check failed.
finish() {
	ended receiver
	ended sender
	note "$CASE"
}

# receiver_closes ORDER...: 64 MiB half written over a slow cable, seven more granted.
receiver_closes() {
	local i

	begin "receiver: $*, half written"
	play a receiver <<-END
		$(meet listen 64M 4M)
		post 0 0 0 64M
		$(for ((i = 1; i < 8; i++)); do echo "post $i 1 $((i - 1))K 512K"; done)
		thread 1 ? test 0
		written 0 3M
		$(let_go "$@")
		remap 0
		remap 1
		clean 0 1500
		clean 1 10
		join 1
		touch $FAULTS/closed
	END
	play b sender <<-END
		$(meet connect 64M 4M)
		post 0 0 0 64M
		$(for ((i = 1; i < 8; i++)); do echo "? post $i 1 0 512K"; done)
		! within $(ms 30000) test 0
		await $FAULTS/closed
		$(let_go "dereg 1" "dereg 0" "close 0" "finalize 0")
	END
	finish
}

# The sender's process is stopped with bytes of a large message in flight, and continues
# later.
sender_stopped() {
	begin "receiver closes while the sender stands still in the middle of a message"
	play a receiver <<-END
		$(meet listen 64M)
		post 0 0 0 64M
		thread 1 ? test 0
		written 0 2M
		touch $FAULTS/ready
		await $FAULTS/go
		within $(ms $BOUND) dereg 0
		join 1
		within $(ms $BOUND) close 0
		remap 0
		touch $FAULTS/closed
		clean 0 2000
	END
	play b sender <<-END
		$(meet connect 64M)
		post 0 0 0 64M
		! within $(ms 60000) test 0
		$(let_go "dereg 0" "close 0")
	END
	arrives ready
	signal sender STOP
	touch "$FAULTS/go"
	arrives closed
	signal sender CONT
	finish
}

# sender_closes ORDER...: its memory is freed, too, while its writes are in flight.
sender_closes() {
	local i

	begin "sender: $*, writes in flight, sends queued"
	play b sender <<-END
		$(meet connect 64M)
		post 0 0 0 64M
		$(for ((i = 1; i < 16; i++)); do echo "post $i 0 0 $((i % 2 ? 99 : 999999))"; done)
		await $FAULTS/ready
		pause 100
		$(for i in "$@"; do echo "within $(ms $BOUND) $i"; done)
		remap 0
		touch $FAULTS/closed
		pause 500
	END
	play a receiver <<-END
		$(meet listen 64M)
		post 0 0 0 64M
		touch $FAULTS/ready
		? within $(ms 30000) test 0
		await $FAULTS/closed
		$(let_go "dereg 0" "close 0" "finalize 0")
	END
	finish
}

# Granted receives without a send; the sender is idle, or asleep.
granted_only() {
	begin "receiver closes with receives granted, nothing sent"
	play a receiver <<-END
		$(meet listen 8M)
		$(for i in 0 1 2 3 4 5 6 7; do echo "post $i 0 ${i}M 1M"; done)
		pending 0 200
		$(let_go "dereg 0" "close 0")
		remap 0
		touch $FAULTS/closed
		clean 0 1000
	END
	play b sender <<-END
		$(meet connect 8M)
		await $FAULTS/closed
		? post 0 0 0 1M
		$(let_go "dereg 0" "close 0")
	END
	finish
}

# Everything is left open, and comes again afterwards.
finalize_only() {
	begin "finalize with comms, a listener and a connect left open; init again"
	play a receiver <<-END
		init 0
		$(meet listen 8M)
		listen 1 $FAULTS/handle.unused
		$(for i in 0 1 2 3 4 5 6 7; do echo "post $i 0 ${i}M 1M"; done)
		touch $FAULTS/ready
		? test 0
		within $(ms $BOUND) finalize 0
		remap 0
		clean 0 500
		init 1
		listen 2 $FAULTS/handle.again
		await $FAULTS/ready.again
		accept 1 2
		room 1 8M
		transfer 1 1M 20 5
		drop 1
		close-listen 2
		finalize 1
	END
	play b sender <<-END
		init 0
		$(meet connect 8M)
		await $FAULTS/handle.unused
		connect-calls 2 $FAULTS/handle.unused 1
		post 0 0 0 1M
		post 1 0 0 100
		await $FAULTS/ready
		within $(ms $BOUND) finalize 0
		remap 0
		init 0
		touch $FAULTS/ready.again
		connects 1 $FAULTS/handle.again 8M
		transfer 1 1M 20 5
		drop 1
		finalize 0
	END
	finish
}

# Ten times, in a process that is connected with itself: the process keeps nothing of what was left
# open. What the C library keeps in an arena of a thread that has ended is no leak: there is one
# arena. Nor is what it keeps in its heap: the 17 MB of buffers that libfabric 2.1 opens an endpoint
# with stay mappings of their own, which it gives back.
left_open_is_freed() {
	local i

	begin "finalize frees what was left open"
	MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=131072 play a alone <<-END
		buffer 0 1M
		$(for ((i = 0; i < 12; i++)); do
			((i != 2)) || echo "fds before"
			((i != 2)) || echo "memory before"
			cat <<-ROUND
				init 0
				listen 0 $FAULTS/handle
				thread 1 connect 1 $FAULTS/handle
				accept 0 0
				join 1
				reg 0 0 0
				reg 1 1 0
				post 0 0 0 64K
				within $(ms $BOUND) finalize 0
			ROUND
		done)
		limit 5000
		fds-back before 0
		memory-back before $((4 * FAULTS_SLOW * FAULTS_SLOW))M
	END
	ended alone
	note "$CASE"
}

# Two contexts in a process: the end of one does not touch the other's.
two_contexts() {
	begin "finalize of one context beside another"
	play a receiver <<-END
		init 0
		listen 0 $FAULTS/handle
		init 1
		listen 1 $FAULTS/handle.second
		await $FAULTS/ready
		accept 0 0
		accept 1 1
		room 0 8M
		room 1 8M
		post 0 0 0 1M
		thread 1 transfer 1 64K 3000 6
		within $(ms $BOUND) finalize 0
		join 1
		drop 1
		finalize 1
	END
	play b sender <<-END
		init 0
		touch $FAULTS/ready
		await $FAULTS/handle.second
		connect 0 $FAULTS/handle
		init 1
		connect 1 $FAULTS/handle.second
		room 0 8M
		room 1 8M
		transfer 1 64K 3000 6
		within $(ms $BOUND) finalize 0
		drop 1
		finalize 1
	END
	finish
}

faults_init
mesh_up triangle
granted_only
finalize_only
left_open_is_freed
two_contexts
# Slow enough that the peer cannot finish before it is cut off.
mesh_shape b ba 40mbit
receiver_closes "dereg 0" "dereg 1" "close 0" "close-listen 0"
receiver_closes "close 0" "close-listen 0"
receiver_closes "close-listen 0" "dereg 1" "dereg 0" "close 0"
receiver_closes "finalize 0" "init 0"
sender_stopped
mesh_shape b ba 200mbit
sender_closes "dereg 0" "close 0"
sender_closes "close 0"
sender_closes "finalize 0" "init 0"
