#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_return.sh - one of two shaped cables goes away and comes back, several times, while messages
# of all sizes stream in both directions: each time the connections go on over the other one, and
# use both again soon after. Every byte is checked.
#
# RETURNS=20 makes it a long run (4 minutes), which ends with the medians.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

RETURNS=${RETURNS:-3}

# The node whose end goes, and for how many seconds. The pauses of a cable that is lost repeatedly
# grow to 10 s, but count from its loss: so it has waited long enough when it comes back.
round_choose() {
	local first=("a 1" "b 5" "a 2")

	read -r NODE AWAY <<<"${first[$1]:-$( (($1 % 2)) && echo b || echo a) 11}"
}

cables_init 2 200mbit
stream carrier 0
carries x2 20000
moved=() left=() carried=()
for ((n = 0; n < RETURNS; n++)); do
	round_choose $n
	mesh_carrier "$NODE" x2 down
	moves 1000
	moved+=("$MOVED_MS")
	note "$NODE's x2 has lost its carrier: something arrives after $MOVED_MS ms"
	pause "$AWAY"
	left+=("$(share x1)")
	mesh_carrier "$NODE" x2 up
	carries x2 1000
	carried+=("$CARRIED_MS")
	note "after ${AWAY}s it has it again: $CARRIED % of the cable are used $CARRIED_MS ms later"
done
note "medians of $n: the first message after $(median "${moved[@]}") ms, x1 carried \
$(median "${left[@]}") % alone, x2 carried its share $(median "${carried[@]}") ms after its return"
stream_stop
stream_ends

# One line when a cable goes and one when it is back, however many comms there are.
for text in 'its messages go over the other paths now' 'its messages go over this path, too'; do
	mapfile -t lines < <(warned "$text")
	[[ ${lines[*]} == "$n $n" ]] || stream_fail "${lines[*]} lines, not $n $n: $text"
done
