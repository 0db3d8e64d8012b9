#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_work_requests.sh - how many verbs work requests a large message costs, counted on the wire.
#
# The lower bound is one RDMA write with immediate, and one send the other way that says where to
# write. A message that does not fill its receive takes a write and a send for each segment.
# docs/verbs.md has the figures and what explains the difference.
# long: it counts what changes rarely; test_writes_in_flight
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

OUT=$MESH_RESULTS
FEW=8 MANY=24 # messages; the difference leaves out what the end of the connection costs

# count SIZE COUNT ROOM: what node a sent and got for so many messages into receives of ROOM bytes:
# WRITES, IMMEDIATES, SENDS, ANSWERS.
count() {
	rm -f "$TRANSFER_GATE"
	transfer_start "$@"
	arrives connected accepted
	rdma_quiet ab ba
	rdma_count a ab
	touch "$TRANSFER_GATE"
	ended sender
	ended receiver
	rdma_count_end ab
	WRITES=$(rdma_counted ab sent writes)
	IMMEDIATES=$(rdma_counted ab sent immediates)
	SENDS=$(rdma_counted ab sent sends)
	ANSWERS=$(rdma_counted ab received sends)
}

# per_message SIZE WRITES [ROOM]: so many writes for each message, and little else. A write into a
# larger receive has a send behind it in place of an immediate.
per_message() {
	local writes sends answers immediates behind=0 room=${3:-$1} extra=$((MANY - FEW))

	count "$1" $FEW "$room"
	writes=$WRITES sends=$SENDS answers=$ANSWERS immediates=$IMMEDIATES
	count "$1" $MANY "$room"
	((writes = WRITES - writes, sends = SENDS - sends, answers = ANSWERS - answers))
	((immediates = IMMEDIATES - immediates))
	((room > $1)) && behind=$writes
	note "$(($1 >> 10)) KiB x $extra into $room bytes: $writes writes ($immediates with" \
		"immediate), $sends sends, $answers sends of the receiver"
	((writes == $2 * extra)) ||
		fail "$writes writes for $extra messages of $1 bytes, not $2 each"
	((immediates == writes - behind)) || fail "$immediates of $writes writes carry an immediate"
	((sends >= behind && sends <= behind + extra / 4)) ||
		fail "the sender sent $sends messages beside its writes, not $behind"
	# A grant each, and libfabric's credits: one message for every 64 that came.
	((answers <= extra + writes / 64 + 1)) ||
		fail "the receiver sent $answers messages for its receives"
}

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}")
faults_init
# A greeting that a busy machine repeats is not counted.
TRANSFER_GATE=$FAULTS/counting
pair_up
per_message $((64 << 10)) 1
for size in 16 64 256 1024; do
	per_message $((size << 10)) 1 $((size + 1 << 10))
done
per_message $((4 << 20)) 1
per_message $((8 << 20)) 2
per_message $((8 << 20)) 2 $((9 << 20))
FAULTS_ENV+=(NCCL_MESH_DEBUG_SEGMENT_SIZE=1G)
per_message $((8 << 20)) 1
