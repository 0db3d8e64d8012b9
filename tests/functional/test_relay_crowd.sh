#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_crowd.sh - 300 connections over one relay begin while its process is stopped: their
# frames wait for it, and all are made when it runs again. Nobody takes a process for one that has
# ended.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

NUM=300

# each COMMAND...: one line of a script for each connection, with its number in place of N.
each() {
	local n

	for ((n = 1; n <= NUM; n++)); do echo "${*//N/$n}"; done
}

faults_init
mesh_up line 3
# The kernel holds few of the frames.
for node in a b; do
	on $node sysctl -qw net.ipv4.tcp_wmem="4096 8192 8192" net.ipv4.tcp_rmem="4096 8192 8192" ||
		fail "cannot set the sockets' memory"
done
FAULTS_ENV=(
	"NCCL_MESH_RELAY_MEMORY=8G"
	"MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_CONNECT_TIMEOUT=120"
	"NCCL_MESH_ACCEPT_TIMEOUT=120"
)
relays b relay
play c listener <<-END
	limit 120000
	accepts 0 $FAULTS/handle
	$(each accept N 0)
	touch $FAULTS/accepted
	await $FAULTS/over
	$(each close N)
	close 0
	close-listen 0
END
arrives handle
for ((n = 1; n <= NUM; n++)); do cp "$FAULTS/handle" "$FAULTS/handle.$n"; done
play a connector <<-END
	limit 120000
	connect 0 $FAULTS/handle
	touch $FAULTS/first
	await $FAULTS/go
	$(each connect-calls N "$FAULTS/handle.N" 2)
	touch $FAULTS/begun
	$(each connect N "$FAULTS/handle.N.begun")
	touch $FAULTS/connected
	await $FAULTS/over
	$(each close N)
	close 0
END
arrives first
signal relay STOP
touch "$FAULTS/go"
arrives begun
signal relay CONT
arrives connected accepted
for name in connector listener relay; do unsaid $name WARN "lost node"; done
touch "$FAULTS/over"
for name in connector listener relay; do ended $name; done
note "$NUM connections were made"
