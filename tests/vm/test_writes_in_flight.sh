#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_writes_in_flight.sh - eight comms between two nodes keep as many RDMA writes in flight as
# their grants and the window allow: with the answers of the receiver's NIC dropped, so that no
# write completes, the sender's counter says how many were posted.
# seconds: 35
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

COMMS=8 MESSAGES=8 # of each comm
WINDOW_KIB=$((16 << 10)) # src/fabric/flow.c: of verbs at least

# each COMMAND...: for every comm, with @ for its number.
each() {
	local comm

	for ((comm = 0; comm < COMMS; comm++)); do printf '%s\n' "${@//@/$comm}"; done
}

# posts KIB: every message of every comm, each in a place of its own.
posts() {
	local k

	for ((k = 0; k < COMMS * MESSAGES; k++)); do
		echo "post $k $((k / MESSAGES)) $((k % MESSAGES * $1))K $1K"
	done
}

# ends: of all of them, and then a stream on each comm, every byte.
ends() {
	local k

	for ((k = 0; k < COMMS * MESSAGES; k++)); do echo "test $k"; done
	each "transfer @ 16K 8 @" "dereg @" "close @"
}

# segments: the writes that the sender has posted.
segments() {
	on a "$MESH_BUILD/fi_mesh" watch --count 1 --json --pid "${FAULTS_PID[sender]}" |
		python3 -c 'import json, sys
print(sum(each["segments"] for each in json.load(sys.stdin)["links"]
          if each["direction"] == "send"))' || fail "fi_mesh watch"
}

# pair_start KIB: both processes are under way. The sender posts once "dropped" is there, and both
# go on once "passed" is.
pair_start() {
	rm -f "$FAULTS"/{handle,granted,dropped,posted,passed}*
	play b receiver <<-END
		limit $TRANSFER_MS
		listen 0 $FAULTS/handle
		$(each "await $FAULTS/handle.@" "accept @ 0" \
			"buffer @ $((MESSAGES * $1))K" "reg @ @ @")
		$(posts "$1")
		pending 0 2000
		touch $FAULTS/granted
		await $FAULTS/passed
		$(ends)
		close-listen 0
	END
	play a sender <<-END
		limit $TRANSFER_MS
		await $FAULTS/handle
		$(each "touch $FAULTS/handle.@" "connect @ $FAULTS/handle" \
			"buffer @ $((MESSAGES * $1))K" "reg @ @ @")
		await $FAULTS/dropped
		$(posts "$1")
		pending $((COMMS * MESSAGES - 1)) 4000
		touch $FAULTS/posted
		await $FAULTS/passed
		$(ends)
	END
}

# in_flight KIB WRITES: with messages of so many KiB, so many writes.
in_flight() {
	local before posted

	pair_start "$1"
	arrives granted
	rdma_quiet ab ba
	before=$(segments)
	roce_lose b ba
	touch "$FAULTS/dropped"
	arrives posted
	posted=$(($(segments) - before))
	on b tc qdisc del dev ba root || fail "cannot pass the answers"
	touch "$FAULTS/passed"
	ended sender
	ended receiver
	note "$posted writes of $1 KiB in flight," \
		"for $((COMMS * MESSAGES)) messages of $COMMS comms"
	((posted == $2)) || fail "$posted writes in flight, not $2"
}

# If the link is given up because of the dropped answers, its messages wait until it is back.
FAULTS_ENV+=("${TRANSFER_PATIENT[@]}" NCCL_MESH_RECOVERY_TIMEOUT=100)
faults_init
pair_up
# All that are granted; and what fills the window.
in_flight 64 $((COMMS * MESSAGES))
in_flight 512 $((WINDOW_KIB / 512))
