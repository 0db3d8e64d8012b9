#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_last_word.sh - a receiver closes, and its process ends, right after the acknowledgements of
# its last messages were lost with one of two cables: the sender's messages are sent all the same.
# seconds: 12
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# All large messages: together they fit what TCP sends without an acknowledgement.
FAULTS_ENV+=("NCCL_MESH_DEBUG_EAGER_LIMIT=1K" "NCCL_MESH_DEAD_PEER_TIMEOUT=2")
BYTES=3072
COUNT=4
ROOM=$((COUNT * BYTES))

# posts, tests: lines of a script, one for each message.
posts() { for ((i = 0; i < COUNT; i++)); do echo "post $i 1 $((i * BYTES)) $BYTES"; done; }
tests() { for ((i = 0; i < COUNT; i++)); do echo "test $i"; done; }

# last_word NIC: that cable falls silent when b's grants have arrived.
last_word() {
	rm -f "$FAULTS"/{handle,granted,silent}*
	play a sender <<-END
		$(meet connect $ROOM $ROOM)
		transfer 0 $BYTES 8 1
		await $FAULTS/silent
		$(posts)
		$(tests)
		dereg 0
		dereg 1
		close 0
	END
	play b receiver <<-END
		$(meet listen $ROOM $ROOM)
		transfer 0 $BYTES 8 1
		$(posts)
		pending 0 300
		touch $FAULTS/granted
		$(tests)
		written 1 $ROOM
		dereg 0
		dereg 1
		close 0
	END
	arrives granted
	silence a "$1" # b alone still receives over it
	touch "$FAULTS/silent"
	ended receiver
	ended sender
	silence_end a
	# Either end may judge first.
	grep -Eq "node b \(10.77.*$1 .*: (no answer|it gave this link up)" "$FAULTS/sender.log" ||
		faults_show "$1 has carried nothing"
	unsaid sender WARN failed
	note "$1 is lost: all $COUNT messages are sent"
}

faults_init
mesh_node a b
for i in 1 2; do mesh_link a x$i 10.77.$i.1/24 b x$i 10.77.$i.2/24; done
for i in 1 2; do last_word x$i; done
