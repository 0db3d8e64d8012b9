#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_close_asleep.sh - closing with writes on their way to a peer whose process lives and whose
# NCCL does not poll takes what those bytes take, and no timeout; no peer is cut off, and another
# connection between the same two processes loses nothing. With a process that is stopped, all
# connections together wait once.
# seconds: 45
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/faults.sh
. "$here/faults.sh"

# Of the processes that live: far from the bound, so that a close that waits for it is found on a
# loaded machine, too.
PATIENT=("${FAULTS_ENV[@]}" "NCCL_MESH_DEAD_PEER_TIMEOUT=30")
# What is in flight, 30 MB and less, takes up to 1.2 s at 200 Mbit/s; the rest is for a loaded
# machine.
BOUND=8000
# The engine polls the domains for a second after NCCL's last poll.
ASLEEP=1500

# show NAME: how long each end took, for the reader of the log.
show() {
	note "$CASE: $(grep -oE '^ok (dereg|close): .*ms' "$FAULTS/$1.log" | paste -sd';')"
}

# The script of a process that has two connections with the other one, 0 and 1.
second() {
	if [[ $1 == listen ]]; then
		echo "await $FAULTS/handle.second"
		echo "accept 1 0"
	else
		echo "touch $FAULTS/handle.second"
		echo "connect 1 $FAULTS/handle"
	fi
	printf '%s\n' "buffer 1 64K" "reg 1 1 1"
}

begin() {
	CASE=$1
	rm -f "$FAULTS"/{handle,go,ready,closed,stopped}*
}

# finish NAME: no timeout and no cut; prints the time that NAME's closing took.
finish() {
	ended sender
	ended receiver
	unsaid sender "(INFO|WARN)" "did not (stop|answer)"
	unsaid receiver "(INFO|WARN)" "did not (stop|answer)"
	show "$1"
}

# sender_closes RATE
sender_closes() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "the sender closes, the receiver sleeps, $1"
	mesh_shape a ab "$1"
	play b receiver <<-END
		init 0
		$(meet listen 64M)
		$(second listen)
		post 0 0 0 64M
		post 9 1 0 5000
		pause $ASLEEP
		touch $FAULTS/ready
		await $FAULTS/closed
		within $(ms $BOUND) test 9
		! test 0
		dereg 0
		close 0
		dereg 1
		close 1
		finalize 0
	END
	play a sender <<-END
		init 0
		$(meet connect 64M)
		$(second connect)
		await $FAULTS/ready
		post 0 0 0 64M
		pending 0 200
		within $(ms $BOUND) dereg 0
		within $(ms $BOUND) close 0
		post 9 1 0 5000
		within $(ms $BOUND) test 9
		touch $FAULTS/closed
		within $(ms $BOUND) dereg 1
		within $(ms $BOUND) close 1
		finalize 0
	END
	finish sender
}

# receiver_closes RATE
receiver_closes() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "the receiver closes, the sender sleeps, $1"
	mesh_shape a ab "$1"
	play b receiver <<-END
		init 0
		$(meet listen 64M)
		$(second listen)
		post 0 0 0 64M
		post 9 1 0 5000
		await $FAULTS/ready
		within $(ms $BOUND) dereg 0
		remap 0
		within $(ms $BOUND) close 0
		touch $FAULTS/closed
		within $(ms $BOUND) test 9
		clean 0 300
		dereg 1
		close 1
		finalize 0
	END
	play a sender <<-END
		init 0
		$(meet connect 64M)
		$(second connect)
		post 0 0 0 64M
		pending 0 50
		pause $ASLEEP
		touch $FAULTS/ready
		await $FAULTS/closed
		post 9 1 0 5000
		within $(ms $BOUND) test 9
		within $(ms $BOUND) dereg 0
		within $(ms $BOUND) close 0
		within $(ms $BOUND) dereg 1
		within $(ms $BOUND) close 1
		finalize 0
	END
	finish receiver
}

# Four connections and their memory, given back while the peer's process is stopped: two at the
# same time, the second one half of the timeout later, and then the others. One timeout is all.
peer_stopped() {
	local FAULTS_ENV=("${FAULTS_ENV[@]}" "NCCL_MESH_DEAD_PEER_TIMEOUT=8")
	local i

	begin "four connections with a process that stands still"
	play b victim <<-END
		init 0
		$(meet listen 64M)
		$(for i in 1 2 3; do echo "await $FAULTS/handle.$i"; echo "accept $i 0"; done)
		post 0 0 0 64M
		touch $FAULTS/ready
		stop
	END
	play a survivor <<-END
		init 0
		$(meet connect 64M)
		$(for i in 1 2 3; do
			echo "touch $FAULTS/handle.$i"
			echo "connect $i $FAULTS/handle"
			echo "buffer $i 64K"
			echo "reg $i $i $i"
			echo "post $i $i 0 64K"
		done)
		post 0 0 0 64M
		await $FAULTS/stopped
		thread 1 within $(ms 10500) dereg 0
		pause 4000
		within $(ms 6500) close 1
		within $(ms 2000) close 2
		within $(ms 2000) close 3
		join 1
		within $(ms 2000) close 0
		finalize 0
	END
	arrives ready
	stands victim
	touch "$FAULTS/stopped"
	ended survivor
	signal victim KILL
	ended victim 137
	show survivor
}

faults_init
mesh_up triangle
sender_closes 10gbit
sender_closes 200mbit
receiver_closes 10gbit
receiver_closes 200mbit
mesh_shape a ab none
peer_stopped
