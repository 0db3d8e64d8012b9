# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# relay_end.sh - a process behind a relay, to which messages stream, ends while writes are in flight
# to it. To be sourced by tests.
#
#	a ---- b ---- c		b relays; the process of c is killed

# shellcheck source=tests/functional/faults.sh
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Seconds. What decides is which of the two comes first: the end's report, or this timeout.
RECOVERY=${RECOVERY:-60}
FAULTS_ENV+=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_RECOVERY_TIMEOUT=$RECOVERY")

# relay_end_init: a line in which there is always something in flight.
relay_end_init() {
	faults_init
	mesh_up line 3
	mesh_shape b bc 40mbit
}

# begins COMMAND: the process "survivor" of a streams to "end" of c over "relay" of b. COMMAND is
# what "end" does before, or empty.
begins() {
	rm -f "$FAULTS"/{handle,handle.met,handle.b,over,begun}
	play b relay <<-END
		limit 300000
		listen 9 $FAULTS/handle.b
		await $FAULTS/over
	END
	play c end <<-END
		$(meet listen 8M)
		transfer 0 8M 2 1
		touch $FAULTS/begun
		$1
		stream 0 8M $FAULTS/never 1
	END
	play a survivor <<-END
		$(meet connect 8M)
		transfer 0 8M 2 1
		limit $((RECOVERY * 3000))
		! stream 0 8M $FAULTS/never 1
		touch $FAULTS/over
		drop 0
	END
	arrives begun handle.b
	wait_for in_flight 60 || faults_show "the relay has nothing in flight"
}

in_flight() {
	on b ss -Htn state established dst "$(mesh_addr c cb)" | grep -Eq '^ *[0-9]+ +[1-9]'
}

# unread: what c has not read of its control connections.
unread() {
	on c ss -Htn state established \( sport = ":$(handle_port "$FAULTS/handle")" or \
		dport = ":$(handle_port "$FAULTS/handle.b")" \) | grep -E '^ *[1-9]'
}

# data_reset: resets the provider's connections of c, all but the control connections.
data_reset() {
	local c b

	c=$(handle_port "$FAULTS/handle") b=$(handle_port "$FAULTS/handle.b")
	on c ss -HKtn state established src "$(mesh_addr c cb)" and \
		\( sport != ":$c" and dport != ":$c" and sport != ":$b" and dport != ":$b" \) |
		grep -q . || faults_show "no data connection was reset"
}

# reported: the survivor has an error because the process has ended, not because of the timeout.
reported() {
	local words='process has ended|had ended a connection meanwhile'

	ended survivor
	ended relay
	grep -Eq 'relay: the circuit .* is broken: a write .* failed' "$FAULTS/relay.log" ||
		faults_show "no write has failed first"
	unsaid survivor WARN 'has not come back'
	said survivor WARN "$words"
	note "$1: $(grep -hE "^WARN .*($words)" "$FAULTS/survivor.log" | cut -c1-150)"
}
