#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_carrier_lost.sh - a cable is pulled when its NICs are open, and then processes connect: they
# go over a relay at once. Without one they wait, say that there is no carrier, and connect when the
# cable is back; if it does not come back, the error names that. Every byte is checked.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Of the connection without a cable. NCCL_MESH_CONNECT_TIMEOUT is much longer.
RELAYED_MS=8000

# receive COMM, send COMM: the lines that make the comm and move some messages.
receive() {
	printf '%s\n' "listen $1 $FAULTS/handle$1" "accept $1 $1" "reg $1 $1 0" \
		"transfer $1 60000 8 3" "dereg $1" "close $1" "close-listen $1"
}

send() {
	printf '%s\n' "await $FAULTS/handle$1" "${2:-}connect $1 $FAULTS/handle$1" "reg $1 $1 0" \
		"transfer $1 60000 8 3" "dereg $1" "close $1"
}

# pair NAME: the listener on c and the connector on b. The first comm needs the cable; the next one
# begins when it is out.
pair() {
	play c "listener-$1" <<-END
		limit 120000
		buffer 0 64K
		poison 0
		$(receive 0)
		poison 0
		$2
	END
	play b "connector-$1" <<-END
		limit 120000
		buffer 0 64K
		$(send 0)
		touch $FAULTS/first-$1
		await $FAULTS/away-$1
		$3
	END
	arrives "first-$1"
	mesh_unplug b bc
	touch "$FAULTS/away-$1"
}

pair_ended() {
	ended "connector-$1"
	ended "listener-$1"
	rm -f "$FAULTS"/handle*
}

faults_init
FAULTS_ENV+=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500"
	"NCCL_MESH_CONNECT_TIMEOUT=60" "NCCL_MESH_ACCEPT_TIMEOUT=60")
mesh_up triangle patched
relays a relay
pair relayed "$(receive 1)" "$(send 1 "within $(ms $RELAYED_MS) ")"
pair_ended relayed
touch "$FAULTS/over"
ended relay
said relay INFO 'relay: a circuit from node b to node c'
note "the cable is out: the connection goes over the relay"

FAULTS_ENV+=("NCCL_MESH_RELAY=off")
mesh_plug b bc
pair back "$(receive 1)" "$(send 1)"
wait_for "grep -q 'still connecting from bc to node c .*(bc has no carrier' \
	$FAULTS/connector-back.log" 40 || faults_show "the connector does not say what it waits for"
mesh_plug b bc
pair_ended back
note "no relay: the connection waits for the cable"

FAULTS_ENV+=("NCCL_MESH_CONNECT_TIMEOUT=4")
pair gone "listen 1 $FAULTS/handle1
	await $FAULTS/given-up" "await $FAULTS/handle1
	! connect 1 $FAULTS/handle1
	touch $FAULTS/given-up"
pair_ended gone
said connector-gone WARN 'gave up connecting to node c .*bc, which leads there.*no carrier'
note "the cable does not come back: $(grep -m1 'WARN.*gave up' "$FAULTS/connector-gone.log")"
