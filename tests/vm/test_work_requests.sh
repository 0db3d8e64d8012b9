#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_work_requests.sh - how many verbs work requests a large message costs, counted on the wire.
#
# The lower bound is one RDMA write with immediate, and one send the other way that says where to
# write. docs/verbs.md has the figures and what explains the difference.
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/faults.sh
. "$here/../functional/faults.sh"
# shellcheck source=tests/vm/rdma.sh
. "$here/rdma.sh"
# shellcheck source=tests/vm/transfer.sh
. "$here/transfer.sh"

OUT=$MESH_RESULTS
FEW=8 MANY=24 # messages; the difference leaves out what the connection itself costs

# count SIZE COUNT: what node a sent and got for so many messages, into WRITES, SENDS, ANSWERS.
count() {
	rdma_count a ab
	transfer "$1" "$2"
	rdma_count_end ab
	WRITES=$(rdma_counted ab sent writes)
	IMMEDIATES=$(rdma_counted ab sent immediates)
	SENDS=$(rdma_counted ab sent sends)
	ANSWERS=$(rdma_counted ab received sends)
}

# per_message SIZE WRITES: so many writes for each message, and little else.
per_message() {
	local writes sends answers immediates

	count "$1" $FEW
	writes=$WRITES sends=$SENDS answers=$ANSWERS immediates=$IMMEDIATES
	count "$1" $MANY
	((writes = WRITES - writes, sends = SENDS - sends, answers = ANSWERS - answers))
	((immediates = IMMEDIATES - immediates))
	note "$(($1 >> 10)) KiB x $((MANY - FEW)): $writes writes ($immediates with immediate)," \
		"$sends sends, $answers sends of the receiver"
	((writes == $2 * (MANY - FEW))) ||
		fail "$writes writes for $((MANY - FEW)) messages of $1 bytes, not $2 each"
	((immediates == writes)) || fail "$immediates of $writes writes carry an immediate"
	((sends <= (MANY - FEW) / 4)) ||
		fail "the sender sent $sends messages beside its writes"
	# A grant each, and libfabric's credits: one message for every 64 that came.
	((answers <= MANY - FEW + writes / 64 + 1)) ||
		fail "the receiver sent $answers messages for its receives"
}

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}")
faults_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
rdma_up
per_message $((64 << 10)) 1
per_message $((4 << 20)) 1
per_message $((8 << 20)) 2
FAULTS_ENV+=(NCCL_MESH_SEGMENT_SIZE=1G)
per_message $((8 << 20)) 1
