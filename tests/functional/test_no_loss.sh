#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_no_loss.sh - what a comm that outlives its cables must not take for a lost cable: a process
# that is stopped for longer than each timeout, while its kernel answers, and a cable that is slow.
# seconds: 70
# long: tests/world: stopped-and-reset, and processes that are stopped at random
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

# Below the time for which a process is stopped, or a cable is slow.
LIMITS=(NCCL_MESH_DEAD_PEER_TIMEOUT=4 NCCL_MESH_RECOVERY_TIMEOUT=4)
STOPPED_S=9
SLOW_S=9

cables_init 2 200mbit

# nothing_lost: no rank has lost a link, or warned. Small messages may be sent again: each end asks
# about what it has waited for for 3 s.
nothing_lost() {
	! grep -hE ' WARN |INFO .*(lost node|ended: it|cut [0-9]+ connection)' \
		"$STREAM_FOLDER"/rank*.out ||
		stream_fail "something counts as lost"
	[[ $(losses) == 0 ]] || stream_fail "fi_mesh watch shows lost paths"
}

losses() {
	on a timeout 60 "$MESH_BUILD/fi_mesh" watch --stats-dir "$STATS" --prometheus |
		awk '
			index($0, "nccl_mesh_link_losses_total{") == 1 {sum += $NF; n++}
			END {print n ? sum : "none"}
		'
}

STATS=$CABLES_FOLDER/stats
mkdir -m 700 "$STATS" || fail "cannot make $STATS"

# stopped RANK: it is stopped, and continues.
stopped() {
	kill -STOP "${STREAM_PIDS[$1]}"
	pause $STOPPED_S
	kill -0 "${STREAM_PIDS[1 - $1]}" || stream_fail "rank $((1 - $1)) has ended"
	kill -CONT "${STREAM_PIDS[$1]}"
	moves 5000
	note "$STREAM: rank $1 was stopped for $STOPPED_S s: something arrives after $MOVED_MS ms"
	nothing_lost
}

stream two 0 "${LIMITS[@]}" NCCL_MESH_STATS_DIR="$STATS"
moves 5000
stopped 1
stopped 0
# One of two: what was queued there before takes long, and the kernel acknowledges it all the time.
mesh_shape a x2 4mbit
mesh_shape b x2 4mbit
pause $SLOW_S
moves 60000
note "two: x2 carries 4 Mbit/s for $SLOW_S s: something arrives after $MOVED_MS ms"
nothing_lost
for node in a b; do mesh_shape $node x2 200mbit; done
nothing_lost
stream_stop
stream_ends

# The only one.
mesh_carrier a x2 down
stream one 0 "${LIMITS[@]}" NCCL_MESH_STATS_DIR="$STATS"
moves 5000
stopped 1
for node in a b; do mesh_shape $node x1 4mbit; done
pause $SLOW_S
nothing_lost
for node in a b; do mesh_shape $node x1 200mbit; done
moves 60000
note "one: x1 carries 4 Mbit/s for $SLOW_S s: something arrives $MOVED_MS ms later"
nothing_lost
stream_stop
stream_ends
