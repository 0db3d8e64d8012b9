#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_return.sh - one of two shaped cables goes away and comes back, several times, while messages
# of all sizes stream in both directions: each time the connections go on over the other one, and
# use both again soon after. Every byte is checked.
# alone: it measures what shaped cables carry
# seconds: 40
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/cables.sh
. "$here/cables.sh"

cables_init 2 200mbit
stream carrier 0
carries x2 20000
n=0
# Each time at another end. The pauses of a cable that is lost repeatedly grow, but count from its
# loss, so that it has waited long enough when it comes back.
for round in "a 1" "b 5" "a 2"; do
	read -r node away <<<"$round"
	mesh_carrier "$node" x2 down
	moves 1000
	note "$node's x2 has lost its carrier: something arrives after $MOVED_MS ms"
	pause "$away"
	mesh_carrier "$node" x2 up
	carries x2 1000
	note "after ${away}s it has it again: $CARRIED % of the cable are used $CARRIED_MS ms later"
	((++n))
done
stream_stop
stream_ends

# One line when a cable goes and one when it is back, however many comms there are.
for text in 'its messages go over the other paths now' 'its messages go over this path, too'; do
	mapfile -t lines < <(said "$text")
	[[ ${lines[*]} == "$n $n" ]] || stream_fail "${lines[*]} lines, not $n $n: $text"
done
