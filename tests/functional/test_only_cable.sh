#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_only_cable.sh - two nodes of a triangle lose their only cable while messages of all sizes
# stream in both directions: by its carrier at either end, by silence, and for good. Each time the
# connections go on through the third node, and soon after the cable's return over it; so do those
# that are made while nothing comes through, by a relay or by the third node's kernel. Every byte is
# checked.
# seconds: 55
. "$(dirname "${BASH_SOURCE[0]}")/relays.sh"

RATE=200mbit

faults_init
mesh_node a b r
mesh_link a x1 10.77.1.1/24 b x1 10.77.1.2/24
mesh_link a x2 10.77.2.1/24 r x2 10.77.2.2/24
mesh_link b x3 10.77.3.1/24 r x3 10.77.3.2/24
for nic in "a x1" "b x1" "a x2" "r x2" "b x3" "r x3"; do
	# shellcheck disable=SC2086 # two words
	mesh_shape $nic $RATE
done
# shellcheck disable=SC2034 # of cables.sh
CABLES_BYTES_S=$((${RATE%mbit} * 1000000 / 8))

# detours: how many connections go through node r now, of both ranks, as the last line of each says.
detours() {
	local rank

	for rank in 0 1; do
		grep -oE "path: from=[ab] to=[ab] .*via=[a-z]+" "$STREAM_FOLDER/rank$rank.out"
	done | grep -c "via=r"
}

# detoured MS HOW: something arrives within MS milliseconds from now, through node r.
detoured() {
	local began

	began=$(now_ms)
	until (($(detours) > seen)); do
		! too_late $(($(now_ms) - began)) "$1" ||
			stream_fail "$2: nothing goes through node r"
		pause 0.02
	done
	moves $(($1 - ($(now_ms) - began)))
	note "$2: something arrives through node r after $(($(now_ms) - began)) ms"
}

# returned: the cable carries its share again.
returned() {
	carries x1 2000
	note "back: $CARRIED % of the cable are used $CARRIED_MS ms later"
}

relay r
silence b x1
stream start 0 "${ENVIRONMENT[@]}"
(($(detours))) || stream_fail "nothing goes through node r"
moves 1000
note "from the start: the connections are made through node r"
silence_end b
returned
stream_stop
stream_ends

mesh_forward r
mesh_route a 10.77.3.0/24 10.77.2.2 x2
mesh_route b 10.77.2.0/24 10.77.3.2 x3
silence b x1
stream routed 0 "${ENVIRONMENT[@]}" NCCL_MESH_RELAY=off
for rank in 0 1; do
	grep -q 'via=routed' "$STREAM_FOLDER/rank$rank.out" || stream_fail "rank $rank: no route"
done
moves 1000
note "from the start, without relays: the connections are made over the kernel of r"
silence_end b
returned
mesh_carrier b x1 down
moves 1000
note "b's end has lost its carrier: something arrives over the kernel of r after $MOVED_MS ms"
mesh_carrier b x1 up
returned
stream_stop
stream_ends
ip -n "$(mesh_ns a)" route del 10.77.3.0/24
ip -n "$(mesh_ns b)" route del 10.77.2.0/24

stream only 0 "${ENVIRONMENT[@]}"
carries x1 20000
pause 1.5 # a process that has just started waits for ranks that may be starting
for node in a b; do
	seen=$(detours)
	mesh_carrier $node x1 down
	detoured 1000 "$node's end has lost its carrier"
	pause 1
	mesh_carrier $node x1 up
	returned
done

seen=$(detours)
silence b x1
detoured 4000 "nothing comes through"
silence_end b
returned

seen=$(detours)
uncable a x1
detoured 1000 "the cable is gone"
pause 1
moves 1000
stream_stop
stream_ends
relay_ends r
