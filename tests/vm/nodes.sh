# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# nodes.sh - ranks on nodes whose cables carry RDMA, and programs of two processes
# (tests/functional/verbs_pair.h) on one cable between the nodes a and b. To be sourced by tests.

# shellcheck source=tests/vm/rdma.sh
. "$(dirname "${BASH_SOURCE[0]}")/rdma.sh"
# shellcheck source=tests/functional/expect.sh
. "$(dirname "${BASH_SOURCE[0]}")/../functional/expect.sh"

# pair PROGRAM HOW: both processes end well; what they print is in $PAIR/sender.out and
# receiver.out.
pair() {
	local sender receiver program=$MESH_BUILD/functional/$1

	PAIR=$OUT/$1-$2
	mkdir -p "$PAIR"
	mesh_spawn a "$PAIR/sender.out" "$program" sender ab 10.77.1.1/24 rxe_ab "$PAIR" "$2"
	sender=$MESH_SPAWNED
	mesh_spawn b "$PAIR/receiver.out" "$program" receiver ba 10.77.1.2/24 rxe_ba "$PAIR" "$2"
	receiver=$MESH_SPAWNED
	wait "$sender" || { cat "$PAIR/sender.out"; fail "$1 $2: the sender failed"; }
	wait "$receiver" || { cat "$PAIR/receiver.out"; fail "$1 $2: the receiver failed"; }
}
