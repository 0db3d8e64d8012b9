#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_close_asleep.sh - closing with writes on their way to a peer whose process lives and whose
# NCCL does not poll takes what those bytes take, and no timeout; no peer is cut off, and another
# connection between the same two processes loses nothing. With a process that is stopped, all
# connections together wait once.
# seconds: 45
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Of the processes that live: far from the bound, so that a close that waits for it is found on a
# loaded machine, too.
PATIENT=("${FAULTS_ENV[@]}" "NCCL_MESH_DEAD_PEER_TIMEOUT=30")
# Of each single closing, on any machine: what is in flight, 30 MB and less, takes up to 2.4 s at
# 100 Mbit/s; the rest is for a loaded machine.
BOUND=8000
# Of the median of the closings, in ms, beyond what the bytes that crossed the link meanwhile take
# at the link's rate; where nothing slows the build down.
BEYOND=500
# Fewer bytes than a round posts (64 MiB): a closing must not wait for those that were not under
# way when it began.
UNDER_WAY=$((48 << 20))
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

# again listen|connect ROUND: connection 0 anew for each round but the first one.
again() {
	(($2 > 1)) || return 0
	if [[ $1 == listen ]]; then
		printf '%s\n' "await $FAULTS/handle.$2" "accept 0 0"
	else
		printf '%s\n' "touch $FAULTS/handle.$2" "connect 0 $FAULTS/handle"
	fi
	echo "reg 0 0 0"
}

# rounds listen|connect ROUNDS LINES: the script of an end. LINES are those of each round, @ is its
# number.
rounds() {
	local round

	meet "$1" 64M
	second "$1"
	for ((round = 1; round <= $2; round++)); do
		again "$1" $round
		echo "${3//@/$round}"
	done
	printf '%s\n' "within $(ms $BOUND) dereg 1" "within $(ms $BOUND) close 1"
}

begin() {
	CASE=$1
	rm -f "$FAULTS"/{handle,go,ready,closed,stopped}*
}

# No timeout and no cut.
finish() {
	ended sender
	ended receiver
	unsaid sender "(INFO|WARN)" "did not (stop|answer)"
	unsaid receiver "(INFO|WARN)" "did not (stop|answer)"
}

FIRST=() # what the first closing of each case took beyond its bytes, ms

# closings NAME: of each round of NAME, the ms of dereg and close together, and the bytes that
# crossed the link meanwhile.
closings() {
	awk '$1 == "moved" { ms += $3; bytes += $5 }
		$1 == "moved" && $2 == "close:" { print ms, bytes; ms = bytes = 0 }' \
		"$FAULTS/$1.log"
}

# judge NAME MBIT ROUNDS: the median of the closings takes what its bytes take, and BEYOND. That of
# a single one is not judged here.
judge() {
	local ms bytes beyond all=()

	while read -r ms bytes; do
		((beyond = ms - bytes / (125 * $2)))
		note "$CASE: $ms ms with $bytes bytes on the link: $beyond ms beyond them"
		((bytes < UNDER_WAY)) || faults_show "$CASE: $bytes bytes passed while it closed"
		all+=("$beyond")
	done < <(closings "$1")
	((${#all[@]} == $3)) || faults_show "$CASE: ${#all[@]} closings, not $3"
	FIRST+=("${all[0]}")
	mapfile -t all < <(printf '%s\n' "${all[@]}" | sort -n)
	(($3 == 1)) || quick "the median" "${all[$3 / 2]}"
}

# quick WHAT MS
quick() {
	((FAULTS_SLOW > 1 || $2 <= BEYOND)) ||
		faults_show "$CASE: $1 is $2 ms beyond its bytes, not $BEYOND"
}

# closes CASE NAME MBIT ROUNDS RECEIVER SENDER: what both ends do in each round, of which NAME
# closes.
closes() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "$1, $3 Mbit/s"
	mesh_shape a ab "$3mbit"
	play b receiver < <(rounds listen "$4" "$5")
	play a sender < <(rounds connect "$4" "$6")
	finish
	judge "$2" "$3" "$4"
}

WITHIN="within $(ms $BOUND)"
# The other connection goes on, every byte. The same at both ends.
OTHER="$WITHIN test 9
$WITHIN transfer 1 16K 20 @"

# sender_closes MBIT ROUNDS
sender_closes() {
	closes "the sender closes, the receiver sleeps" sender "$1" "$2" "post 0 0 0 64M
		post 9 1 0 5000
		pause $ASLEEP
		touch $FAULTS/ready.@
		await $FAULTS/closed.@
		$OTHER
		! test 0
		drop 0" "await $FAULTS/ready.@
		post 0 0 0 64M
		pending 0 200
		moved ab $WITHIN dereg 0
		moved ab $WITHIN close 0
		post 9 1 0 5000
		touch $FAULTS/closed.@
		$OTHER"
}

# receiver_closes MBIT ROUNDS
receiver_closes() {
	closes "the receiver closes, the sender sleeps" receiver "$1" "$2" "post 0 0 0 64M
		post 9 1 0 5000
		await $FAULTS/ready.@
		moved ba $WITHIN dereg 0
		remap 0
		moved ba $WITHIN close 0
		touch $FAULTS/closed.@
		$OTHER
		clean 0 300" "post 0 0 0 64M
		pending 0 50
		pause $ASLEEP
		touch $FAULTS/ready.@
		await $FAULTS/closed.@
		post 9 1 0 5000
		$OTHER
		$WITHIN dereg 0
		$WITHIN close 0"
}

# Four connections and their memory, given back while the peer's process is stopped: two at the
# same time, the second one half of the timeout later, and then the others. One timeout is all.
peer_stopped() {
	local FAULTS_ENV=("${FAULTS_ENV[@]}" "NCCL_MESH_DEAD_PEER_TIMEOUT=8")
	local i

	begin "four connections with a process that stands still"
	play b victim <<-END
		$(meet listen 64M)
		$(for i in 1 2 3; do echo "await $FAULTS/handle.$i"; echo "accept $i 0"; done)
		post 0 0 0 64M
		touch $FAULTS/ready
		stop
	END
	play a survivor <<-END
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
sender_closes 1000 1
sender_closes 200 3
# The first closings between two processes have most in flight, up to 30 MB.
quick "the better one of the first two" "$((FIRST[0] < FIRST[1] ? FIRST[0] : FIRST[1]))"
receiver_closes 1000 1
# Slow enough that bytes are still under way when the sender has fallen asleep.
receiver_closes 100 3
mesh_shape a ab none
peer_stopped
