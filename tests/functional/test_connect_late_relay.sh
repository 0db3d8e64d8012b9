#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_connect_late_relay.sh - a connection over a relay is complete, and the listener's NCCL has
# it; the relay loses its way before the connector's NCCL calls connect() again: the connection goes
# on over another relay, and every byte arrives.
# seconds: 20
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# busy NODE...: a connection there holds something that was not read, or not acknowledged.
busy() {
	local node

	for node; do
		! on "$node" ss -tnH state established | awk '$1 + $2 > 0 { found = 1 }
			END { exit !found }' || return 0
	done
	return 1
}

command -v ss >/dev/null || skip "'ss' is missing (Debian, Ubuntu: iproute2)"
faults_init
FAULTS_ENV+=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_DEBUG_MAX_PATHS=1"
	"NCCL_MESH_RECOVERY_TIMEOUT=20" "NCCL_MESH_CONNECT_TIMEOUT=60"
	"NCCL_MESH_ACCEPT_TIMEOUT=60")
mesh_node a b p q
mesh_cabled ap pb aq qb
for relay in p q; do relays $relay $relay; done
play b listener <<-END
	limit 120000
	accepts 0 $FAULTS/handle
	close-listen 0
	touch $FAULTS/accepted
	room 0 64K poison
	transfer 0 60000 8 3
	close 0
END
play a connector <<-END
	limit 120000
	await $FAULTS/handle
	connect-calls 0 $FAULTS/handle 1
	await $FAULTS/away
	connect 0 $FAULTS/handle.begun
	room 0 64K
	transfer 0 60000 8 3
	close 0
END
arrives accepted handle.begun
used=p other=q
wait_for "grep -q 'relay: a circuit from node a to node b' $FAULTS/p.log $FAULTS/q.log" 60 ||
	faults_show "no relay has a circuit"
grep -q 'relay: a circuit from node a to node b' "$FAULTS/p.log" || used=q other=p
wait_for "! busy a $used b" 60 || faults_show "the nodes do not come to rest"
ip -n "$(mesh_ns $used)" link set dev ${used}b down
wait_for "grep -q 'node $used, which relays this path' $FAULTS/connector.log" 60 ||
	faults_show "the connector does not learn that the circuit is broken"
touch "$FAULTS/away"
ended connector
ended listener
touch "$FAULTS/over"
ended p
ended q
said connector WARN "another route reaches it"
note "over $other after $used lost its way: every byte arrives"
