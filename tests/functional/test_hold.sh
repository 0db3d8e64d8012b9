#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_hold.sh - all cables between two nodes go away while messages of all sizes stream: the
# connections wait, go on when a cable is back, and end in words if none comes back, or if the
# other process has ended. With NCCL_MESH_RECOVERY=off one cable is enough to end them.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

cables_init 2 200mbit

# both NODE down|up: both of its NICs lose or get their carrier.
both() {
	local i

	for i in 1 2; do mesh_carrier "$1" x$i "$2"; done
}

# reset N: every connection of x$N is, the plugin's own as well.
reset() { on a ss -K -t src 10.77."$1".1 >/dev/null 2>&1; }

# uses_x2: the connections have come to use it, too, at both nodes.
uses_x2() {
	local rank

	for rank in 0 1; do
		wait_for "grep -q ' path: .* nic=x2 ' '$STREAM_FOLDER/rank$rank.out'" 60 ||
			stream_fail "no path over x2"
	done
}

# One of two is reset.
stream away 0
uses_x2
reset 2
wait_for "! warned 'lost node .*x2 .*go over the other paths now' | grep -qx 0" 60 ||
	stream_fail "x2 is not lost"
moves 2000
[[ $(warned 'wait for a path' | paste -sd+) == 0+0 ]] || stream_fail "x1 is lost, too"
note "the connections of one cable reset: something arrives after $MOVED_MS ms"

# Away for 5 s, the first one back first; and for a moment.
both a down
pause 5
mesh_carrier a x1 up
moves 5000 # a busy machine has the time
((MOVED_MS <= 1000 * FAULTS_SLOW || $(core_share) < CABLES_CORE)) ||
	stream_fail "something arrives after $MOVED_MS ms only"
note "both cables away for 5 s: something arrives $MOVED_MS ms after the first one is back"
mesh_carrier a x2 up
both b down
both b up
moves 2000
note "both away for a moment: something arrives after $MOVED_MS ms"
pause 1
for i in 1 2; do reset $i; done
moves 2000
note "all connections reset: something arrives after $MOVED_MS ms"
stream_stop
stream_ends

# For longer than the limit.
stream late 0 NCCL_MESH_RECOVERY_TIMEOUT=3
moves 5000
both a down
stream_breaks 0 'the peer has not come back over any path for 3 s (NCCL_MESH_RECOVERY_TIMEOUT)' 4500
stream_breaks 1 'the peer has not come back over any path for 3 s (NCCL_MESH_RECOVERY_TIMEOUT)' 1500
both a up

# The other process ends while the cables are away: known as soon as one of them is back.
stream killed 0 NCCL_MESH_RECOVERY_TIMEOUT=60
moves 5000
both a down
wait_for "((\$(warned 'its messages wait for a path' | paste -sd+)))" 60 || stream_fail "no loss"
kill -KILL "${STREAM_PIDS[1]}"
wait "${STREAM_PIDS[1]}" 2>/dev/null
both a up
stream_breaks 0 'its process has ended' 2000

# Without recovery the loss of one of the cables ends the connections.
stream off 0 NCCL_MESH_RECOVERY=off
uses_x2
reset 2
stream_breaks 0 '\(sending to\|receiving from\) node b' 2000
stream_breaks 1 '\(sending to\|receiving from\) node a' 2000
! grep -q 'go over the other paths' "$STREAM_FOLDER"/rank*.out || stream_fail "a path was resumed"
