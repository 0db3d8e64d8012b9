#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_fence.sh - memory that was taken back from a peer can no longer be written to: neither
# when its registration was closed, nor when the peer was cut off.
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/../functional/lib.sh"
# shellcheck source=tests/vm/rdma.sh
. "$here/rdma.sh"
# shellcheck source=tests/functional/expect.sh
. "$here/../functional/expect.sh"

mesh_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
rdma_up

# late_write HOW: the receiver takes its memory back like this; then the sender writes.
late_write() {
	local folder=$OUT/late-$1 sender receiver

	mkdir -p "$folder"
	mesh_spawn a "$folder/sender.out" "$MESH_BUILD/functional/verbs_fence" \
		sender ab 10.77.1.1/24 rxe_ab "$folder" "$1"
	sender=$MESH_SPAWNED
	mesh_spawn b "$folder/receiver.out" "$MESH_BUILD/functional/verbs_fence" \
		receiver ba 10.77.1.2/24 rxe_ba "$folder" "$1"
	receiver=$MESH_SPAWNED
	wait "$sender" || { cat "$folder/sender.out"; fail "$1: the sender failed"; }
	wait "$receiver" || { cat "$folder/receiver.out"; fail "$1: a write went wrong"; }
	note "$1: the late write $(sed -n 's/late write: //p' "$folder/receiver.out")," \
		"its sender saw '$(sed -n 's/late write: //p' "$folder/sender.out")'"
}

late_write open
late_write close
late_write fence
late_write cached
