#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_close_and_end.sh - what was sent on a comm that was closed arrives, even if the sender's
# process ends right afterwards without closing its other comms, as os._exit() does.
# seconds: 15
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/faults.sh
. "$here/faults.sh"

# arrives_after SIZE COUNT: the kernel of the sender still holds most of it when the sender's last
# request is done.
arrives_after() {
	local size=$1 count=$2

	rm -f "$FAULTS"/handle*
	play a receiver <<-END
		init 0
		listen 1 $FAULTS/handle.open
		$(meet listen 16M)
		accept 1 1
		transfer 0 $size $count 3
		close 0
		close 1
		finalize 0
	END
	play b sender <<-END
		init 0
		$(meet connect 16M)
		await $FAULTS/handle.open
		connect 1 $FAULTS/handle.open
		transfer 0 $size $count 3
		close 0
		die
	END
	ended receiver
	ended sender 137
	note "$count messages of $size"
}

faults_init
mesh_up triangle
# Slower than the half second for which a receiver reads on when it learns of the sender's end.
mesh_shape b ba 10mbit
arrives_after 4M 1
arrives_after 2000 64
arrives_after 0 8
