#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_abandoned.sh - NCCL ends one end of a connection while the only cable is away: the other end
# waits for the cable, but not for NCCL_MESH_RECOVERY_TIMEOUT.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

FAULTS_ENV+=("NCCL_MESH_RECOVERY_TIMEOUT=60")
# Milliseconds from the cable's return to the error: far below that.
SOON=10000

# another ROLE: the lines that make comm 1, which both keep.
another() { [[ $1 == listen ]] && echo "accept 1 0" || echo "connect 1 $FAULTS/handle"; }

# quits ROLE OTHER KEEP WORDS: the end with this role is closed while the cable is away.
quits() {
	local role=$1 other=$2 keep=$3

	CASE="$role is closed"
	rm -f "$FAULTS"/{handle,go,down,closed,up,failed}*
	# The processes may start before the kernel has noticed that the carrier is back.
	mesh_await_link "$(mesh_ns a)" ab
	mesh_await_link "$(mesh_ns b)" ba
	mesh_shape a ab 200mbit
	play "$([[ $role == connect ]] && echo a || echo b)" quitter <<-END
		$(meet "$role" 64M)
		$($keep "$role")
		post 0 0 0 64M
		touch $FAULTS/go.quitter
		await $FAULTS/down
		drop 0
		touch $FAULTS/closed
		await $FAULTS/failed
		$([[ $keep == true ]] || echo close 1)
	END
	play "$([[ $role == connect ]] && echo b || echo a)" waiter <<-END
		$(meet "$other" 64M)
		$($keep "$other")
		post 0 0 0 64M
		thread 3 ! test 0
		touch $FAULTS/go.waiter
		await $FAULTS/up
		join 3 $(ms $SOON)
		touch $FAULTS/failed
		drop 0
		$([[ $keep == true ]] || echo close 1)
	END
	arrives go.quitter go.waiter
	mesh_carrier a ab down
	touch "$FAULTS/down"
	arrives closed
	mesh_carrier a ab up
	touch "$FAULTS/up"
	ended waiter
	ended quitter
	said waiter WARN "$4"
	note "$CASE: the other end: $(sed -n 's/^ok join: //p' "$FAULTS/waiter.log")"
}

faults_init
mesh_up triangle
quits connect listen another "had ended a connection meanwhile"
quits listen connect another "had ended a connection meanwhile"
quits connect listen true "its process has ended, or all of its"
quits listen connect true "its process has ended, or all of its"
