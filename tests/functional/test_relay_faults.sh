#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_faults.sh - two relays, p and q, between the nodes a and b. While messages of all sizes
# stream both ways, p is killed, or one of its cables is pulled: the connections go on over q, every
# byte is checked, and no rank ends with an error. Where p is the only relay, they wait: they go on
# when the cable is back, or over a longer route, and fail at last with a line that names the relay
# and the node that it has lost.
#
#	ROUNDS=100 test_relay_faults.sh		each fault that often
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/relays.sh"

ROUNDS=${ROUNDS:-1}
# goes_on WHAT: both ranks receive on, over the other relay, and end well. On a busy machine a
# connection may have found one of the two routes only: it gets the other one now.
goes_on() {
	local rank noticed='go over the other paths now|another route leads'

	for rank in 0 1; do
		wait_for "grep -qE '$noticed' $STREAM_FOLDER/rank$rank.out" 60 ||
			stream_fail "$1: rank $rank has not noticed"
	done
	moves 20000
	pause 0.2
	moves 20000
	stream_stop
	stream_ends
	note "$1: $(grep -hE "$noticed" "$STREAM_FOLDER/rank0.out" | head -1 |
		cut -d' ' -f2- | cut -c1-160)"
}

test_killed() {
	begin killed p q
	signal p KILL
	goes_on "the relay is killed"
	relay_ends p 137
	relay_ends q
}

# test_pulled NODE NIC RANK: a cable of the relay p. The rank that the cable does not lead to keeps
# its link with p, which may carry other connections.
test_pulled() {
	begin "pulled_$2" p q
	mesh_carrier "$1" "$2" down
	goes_on "$2 of $1 is pulled"
	! grep -q 'lost node p ' "$STREAM_FOLDER/rank$3.out" ||
		stream_fail "rank $3 has given its link with p up"
	relay_ends p
	relay_ends q
	mesh_carrier "$1" "$2" up
}

# goes_on_again WHAT MS: within MS both ranks receive on.
goes_on_again() {
	moves "$2"
	pause 0.2
	moves 5000
	note "$1: goes on after $MOVED_MS ms: $(grep -h 'another route leads' \
		"$STREAM_FOLDER/rank0.out" | head -1 | cut -d' ' -f2- | cut -c1-120)"
}

# The only relay loses a cable, which comes back.
test_cable_back() {
	begin back p
	mesh_carrier b bp down
	for rank in 0 1; do
		wait_for "grep -qE 'wait for (a path|another r)' $STREAM_FOLDER/rank$rank.out" 60 ||
			stream_fail "rank $rank does not wait"
	done
	pause 1.5
	mesh_carrier b bp up
	goes_on_again "the cable is back" 10000
	stream_stop
	stream_ends
	relay_ends p
}

# The only relay of the shortest route is killed; another route has two.
test_longer() {
	mesh_carrier b bq down
	begin longer p
	relay q
	relay r
	moves 20000
	signal p KILL
	wait_for "grep -q 'from=a to=b .* via=q,r ' $STREAM_FOLDER/rank0.out" 60 ||
		stream_fail "no path leads over q and r"
	goes_on_again "a longer route" 10000
	stream_stop
	stream_ends
	relay_ends p 137
	relay_ends q
	relay_ends r
	mesh_carrier b bq up
}

# No route leads to a process that has ended.
test_rank_killed() {
	begin ended p
	kill -KILL "${STREAM_PIDS[1]}"
	stream_breaks 0 "has lost node b, whose process has ended" 10000
	relay_ends p
}

# The only relay stays away.
test_one_relay() {
	ENVIRONMENT+=("NCCL_MESH_RECOVERY_TIMEOUT=2")
	begin one p
	mesh_carrier b bp down
	stream_breaks 0 "no route has led there for 2 s .*since node p, .* has lost node b" 20000
	stream_breaks 1 "no route has led there for 2 s .*since node b has lost node p" 20000
	relay_ends p
	mesh_carrier b bp up
}

faults_init
mesh_node a b p q r
mesh_cabled ap pb aq qb qr rb
for ((round = 0; round < ROUNDS; round++)); do
	test_killed
	test_pulled p pb 0
	test_pulled a ap 1
	test_cable_back
	test_longer
done
test_rank_killed
test_one_relay
