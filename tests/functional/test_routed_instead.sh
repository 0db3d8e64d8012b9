#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed_instead.sh - the only relay between two nodes is killed, and the kernels have routes
# over another node: the streams go on over those, over the relay again when that way is lost, and
# over the kernels once more when that is back, while the relay still runs.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/relays.sh"

faults_init
two_ways

# said_by_both PATTERN
said_by_both() {
	local rank

	for rank in 0 1; do
		wait_for "grep -qE '$1' $STREAM_FOLDER/rank$rank.out" 30 ||
			stream_fail "rank $rank does not say '$1'"
	done
}

# over WAY RANK: how often the rank has said that a path leads over a relay, or is "routed".
over() { grep -cE "path: from=[ab] to=[ab] .*via=$1 " "$STREAM_FOLDER/rank$2.out"; }

begin routed p
routes_over_r
signal p KILL
killed_ms=$(now_ms)
said_by_both 'path: from=[ab] to=[ab] nic=[ab]r .* via=routed '
note "relay p is killed: on over the kernel of r, after $(($(now_ms) - killed_ms)) ms"
moves 20000
pause 1
moves 20000

# Back over the relay when the route is lost, and the other way round.
relay p
mapfile -t before < <(over p 0; over p 1)
ip -n "${MESH_PREFIX}a" link set ar down
wait_for "((before[0] < \$(over p 0) && before[1] < \$(over p 1)))" 30 ||
	stream_fail "they do not go over p again"
moves 20000
note "NIC ar is down: on over p, which runs again"
ip -n "${MESH_PREFIX}a" link set ar up
mesh_route a 10.77.4.0/24 10.77.3.2 ar
back_ms=$(now_ms)
# Looks for what is better are 30 s apart at most.
wait_for "(($(mesh_bytes a ar tx) + 20000000 < \$(mesh_bytes a ar tx)))" 40 ||
	stream_fail "they stay on the relay"
note "NIC ar is up: on over the kernel of r, after $(($(now_ms) - back_ms)) ms, while p runs"
idle=$(mesh_bytes a ap tx) busy=$(mesh_bytes a ar tx)
wait_for "(($busy + 20000000 < \$(mesh_bytes a ar tx)))" 30 ||
	stream_fail "the route carries nothing"
((($(mesh_bytes a ap tx) - idle) * 20 < $(mesh_bytes a ar tx) - busy)) ||
	stream_fail "relay p goes on carrying data"
signal p KILL
moves 1000
pause 1
moves 20000
note "relay p is killed again: nothing changes"
stream_stop
stream_ends

# The end of the process at the other end is noticed, as on any path to it.
ip -n "${MESH_PREFIX}a" route del 10.77.4.0/24
begin ended p
mesh_route a 10.77.4.0/24 10.77.3.2 ar
signal p KILL
said_by_both 'path: from=[ab] to=[ab] nic=[ab]r .* via=routed '
# With frames that it has not read: its kernel resets the connections instead of ending them.
kill -STOP "${STREAM_PIDS[1]}"
wait_for "on b ss -Htn src $(mesh_addr b br) | awk '!\$2 {read = 1} END {exit read || !NR}'" 60 ||
	stream_fail "nothing is unread"
kill -KILL "${STREAM_PIDS[1]}"
stream_breaks 0 'node b' 5000
touch "$FAULTS/over"
