#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_stopped.sh - a relay between the nodes a and b is stopped (SIGSTOP) while messages of
# all sizes stream both ways, every byte of which is checked: its kernel answers, and its process
# does not. The connections leave it for the other relay that they use, or for another route, also
# if the first relay runs and the second one is stopped. Without another route they wait until it
# runs again, for NCCL_MESH_RECOVERY_TIMEOUT; and they wait for a peer that is stopped, although
# other relays run.
# seconds: 80
# long: tests/world stops processes at random, relays among them
. "$(dirname "${BASH_SOURCE[0]}")/relays.sh"

# Milliseconds until messages go on: 0.5 of waiting, 3 of silence, and the way.
LIMIT=${LIMIT:-7000}
# For so long a relay that is left is stopped, and one that is waited for, in seconds: messages go
# on after 3.5 to 5 of them. STOPPED=60 looks at a stop for longer.
STOPPED=${STOPPED:-10}
WAITED=5

stop() { kill -STOP "${RELAY[$1]}"; }
go_on() { kill -CONT "${RELAY[$1]}"; }

# settles: what was received before the stop is counted, also by a rank that has to wait for a core.
settles() {
	local counts last i

	last=$(received)
	for ((i = 0; i < 20; i++)); do
		pause 0.3
		counts=$(received)
		[[ $counts != "$last" ]] || return
		last=$counts
	done
}

# stays MS: no rank receives anything for so long.
stays() {
	local before after began

	mapfile -t before < <(received)
	began=$(now_ms)
	while (($(now_ms) - began < $1)); do
		mapfile -t after < <(received)
		((before[0] == after[0] || before[1] == after[1])) ||
			stream_fail "messages go on without a way"
		pause 0.1
	done
}

# leaves WHAT RELAY: both ranks go on without it, for as long as it is stopped, and after that.
leaves() {
	local began moved

	stop "$2"
	began=$(now_ms)
	settles
	moves "$LIMIT"
	moved=$(($(now_ms) - began))
	while (($(now_ms) - began < STOPPED * 1000)); do
		pause 1
		moves 2000
	done
	go_on "$2"
	pause 1
	moves 2000
	grep -q "node $2, a relay of this path, does not answer node .*: its process may be" \
		"$STREAM_FOLDER"/rank?.out ||
		stream_fail "no rank has said that $2 is stopped"
	note "$1: goes on after $moved ms: $(grep -h 'process may be stopped' \
		"$STREAM_FOLDER"/rank?.out | head -1 | cut -d' ' -f2- | cut -c1-150)"
	stream_stop
	stream_ends
}

# waits WHAT PID: both ranks wait while it is stopped, and go on when it runs again.
waits() {
	local began

	kill -STOP "$2"
	settles
	stays $((WAITED * 1000))
	kill -CONT "$2"
	began=$(now_ms)
	moves 3000
	pause 0.5
	moves 2000
	note "$1: goes on $(($(now_ms) - began)) ms after it runs again"
	stream_stop
	stream_ends
}

test_two_paths() {
	begin two p q
	leaves "the other path" p
	relay_ends p
	relay_ends q
}

test_one_path() {
	begin one p
	relay q
	leaves "another route" p
	grep -q 'from=a to=b .* via=q ' "$STREAM_FOLDER/rank0.out" ||
		stream_fail "no path leads over q"
	relay_ends p
	relay_ends q
}

# The second relay of the route, r, is stopped; the first one answers.
test_second_relay() {
	mesh_carrier b bq down
	begin second q r
	relay p
	leaves "a second relay" r
	grep -q 'from=a to=b .* via=p ' "$STREAM_FOLDER/rank0.out" ||
		stream_fail "no path leads over p"
	relay_ends p
	relay_ends q
	relay_ends r
	mesh_carrier b bq up
}

test_only_relay() {
	begin only p
	waits "the only relay" "${RELAY[p]}"
	relay_ends p
}

test_peer() {
	begin peer p q
	waits "the peer" "${STREAM_PIDS[1]}"
	! grep -qE 'WARN .*(stopped|lost|route)' "$STREAM_FOLDER"/rank?.out ||
		fail "the peer: a path was left"
	relay_ends p
	relay_ends q
}

relays_init
mesh_node a b p q r
mesh_cabled ap pb aq qb qr rb
# In these two parts the plugin runs no code that it does not run in the others.
MORE=(two_paths peer)
[[ $MESH_BUILD != *sanitize* ]] || MORE=()
for test in ${TESTS:-"${MORE[@]}" one_path second_relay only_relay}; do
	"test_$test"
done
