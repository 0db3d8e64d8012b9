#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_second_route.sh - two relays, p and q, between the nodes a and b, and cables of one rate. The
# connections use both routes, and so both cables. p is killed: they go on over q, with one cable's
# rate. p is started again: they use both routes again, though none of them had to wait. The same
# for a cable of p that is pulled, and put back. Every byte is checked.
# seconds: 60
# long: tests/world: ring; test_relay_faults
. "$(dirname "${BASH_SOURCE[0]}")/relays.sh"

RATE=100mbit
CABLES_BYTES_S=$((${RATE%mbit} * 1000000 / 8))
# Percent of one cable's rate, of both ranks' NICs together: what one carries at most, and what two
# carry at least.
ONE=120
TWO=150
# Messages that the relays move, and not their latency.
STREAM_MOST=4000000

# both MS: percent of a cable's rate that rank 0 sends over both of its NICs now.
both() {
	local before after began ms

	before=$(($(mesh_bytes a ap tx) + $(mesh_bytes a aq tx)))
	began=$(now_ms)
	pause "$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))"
	ms=$(($(now_ms) - began))
	after=$(($(mesh_bytes a ap tx) + $(mesh_bytes a aq tx)))
	echo $((100 * (after - before) / (CABLES_BYTES_S * ms / 1000)))
}

# becomes WHAT TEST PERCENT MS: within MS the rate is at least (-ge) or at most (-le) so much.
becomes() {
	local began ms

	began=$(now_ms)
	while :; do
		ms=$(($(now_ms) - began))
		PERCENT=$(both 500)
		! test "$PERCENT" "$2" "$3" || break
		((ms > $4 * CABLES_SLOW)) || continue
		(($(core_share) >= CABLES_CORE)) || skip "the machine is busy: $1: $PERCENT %"
		stream_fail "$1: after $ms ms the cables carry $PERCENT % of one"
	done
	note "$1: $PERCENT % of a cable after $ms ms"
}

# returns WHAT: both routes carry again, and the log says so at both ends.
returns() {
	local rank

	for rank in 0 1; do
		wait_for "grep -q 'another route leads there: its messages go over it, too' \
			$STREAM_FOLDER/rank$rank.out" 40 ||
			stream_fail "$1: rank $rank has no second route"
	done
	becomes "$1" -ge $TWO 40000
}

# The relay dies, and runs again, as another process.
test_killed() {
	begin killed p q
	becomes "two relays" -ge $TWO 20000
	kill -KILL "${RELAY[p]}"
	wait_for "grep -q 'go over the other paths now' $STREAM_FOLDER/rank0.out" 60 ||
		stream_fail "rank 0 has not noticed"
	becomes "p is killed" -le $ONE 20000
	wait "${RELAY[p]}" 2>/dev/null
	relay p
	returns "p runs again"
	stream_stop
	stream_ends
	relay_ends p
	relay_ends q
}

# A cable of the relay that the sending end does not see, and one that it does.
test_pulled() {
	begin "pulled_$2" p q
	becomes "two relays" -ge $TWO 20000
	mesh_carrier "$1" "$2" down
	becomes "$2 of $1 is pulled" -le $ONE 20000
	mesh_carrier "$1" "$2" up
	returns "$2 of $1 is back"
	stream_stop
	stream_ends
	relay_ends p
	relay_ends q
}

relays_init
mesh_node a b p q
mesh_cabled ap pb aq qb
for nic in "a ap" "p pa" "p pb" "b bp" "a aq" "q qa" "q qb" "b bq"; do
	# shellcheck disable=SC2086 # node and NIC
	mesh_shape $nic $RATE
done
test_killed
test_pulled p pb
test_pulled a ap
