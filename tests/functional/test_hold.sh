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

# Away for 5 s, the first one back first; and for a moment.
stream away 0
moves 5000
both a down
pause 5
mesh_carrier a x1 up
moves 5000 # a busy machine has the time
((MOVED_MS <= 1000 * CABLES_SLOW || $(core_share) < CABLES_CORE)) ||
	stream_fail "something arrives after $MOVED_MS ms only"
note "both cables away for 5 s: something arrives $MOVED_MS ms after the first one is back"
mesh_carrier a x2 up
both b down
both b up
moves 2000
note "both away for a moment: something arrives after $MOVED_MS ms"
pause 1
# Every connection of both cables is reset, the plugin's own as well.
for i in 1 2; do
	on a ss -K -t src 10.77.$i.1 >/dev/null 2>&1
done
moves 2000
note "all connections reset: something arrives after $MOVED_MS ms"
stream_stop
stream_ends

# For longer than the limit.
stream late 0 NCCL_MESH_RECOVERY_TIMEOUT=3
moves 5000
both a down
stream_breaks 0 'NCCL_MESH_RECOVERY_TIMEOUT): [0-9]* connections with it failed' 4500
stream_breaks 1 'NCCL_MESH_RECOVERY_TIMEOUT): [0-9]* connections with it failed' 1500
both a up

# The other process ends while the cables are away: known as soon as one of them is back.
stream killed 0 NCCL_MESH_RECOVERY_TIMEOUT=60
moves 5000
both a down
wait_for "((\$(said 'its messages wait for a path' | paste -sd+)))" 60 || stream_fail "no loss"
kill -KILL "${STREAM_PIDS[1]}"
wait "${STREAM_PIDS[1]}" 2>/dev/null
both a up
stream_breaks 0 'its process has ended' 2000

# Without recovery the loss of one of the cables ends the connections.
stream off 0 NCCL_MESH_RECOVERY=off
moves 5000
on a ss -K -t src 10.77.2.1 >/dev/null 2>&1
stream_breaks 0 'node b' 2000
stream_breaks 1 'node a' 2000
! grep -q 'go over the other paths' "$STREAM_FOLDER"/rank*.out || stream_fail "a path was resumed"
