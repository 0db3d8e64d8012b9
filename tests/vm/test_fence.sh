#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_fence.sh - memory that was taken back from a peer can no longer be written to: neither
# when its registration was closed, nor when the peer was cut off.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

# late_write HOW: the receiver takes its memory back like this; then the sender writes.
late_write() {
	pair verbs_fence "$1"
	note "$1: the late write $(sed -n 's/late write: //p' "$PAIR/receiver.out")," \
		"its sender saw '$(sed -n 's/late write: //p' "$PAIR/sender.out")'"
}

mesh_init
pair_up
late_write open
late_write close
late_write fence
late_write cached
