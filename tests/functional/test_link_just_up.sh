#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_link_just_up.sh - a process that starts right after its links came up uses them: libfabric
# leaves out a NIC until the kernel says that it runs, up to a second after the carrier.
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

ROUNDS=6

faults_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24

is_down() { ip -n "$(mesh_ns a)" link show dev ab | grep -q 'state DOWN'; }

# start ROUND: a process on a node whose link came up just now.
start() {
	ip -n "$(mesh_ns a)" link set ab down
	ip -n "$(mesh_ns b)" link set ba down
	wait_for is_down 60 || fail "ab does not go down"
	ip -n "$(mesh_ns b)" link set ba up
	ip -n "$(mesh_ns a)" link set ab up
	play a "start$1" <<-END
		listen 0 $FAULTS/handle$1
		await $FAULTS/opened$1
		close-listen 0
	END
	arrives "handle$1"
	knock a 10.77.1.1 "$FAULTS/handle$1"
	wait_for "grep -q 'NIC 0: ab uses' $FAULTS/start$1.log" 60
	touch "$FAULTS/opened$1"
	ended "start$1"
	said "start$1" INFO "NIC ab taken"
	said "start$1" INFO "NIC 0: ab uses"
}

for ((round = 0; round < ROUNDS; round++)); do
	start $round
done
note "$ROUNDS starts right after link up: each one used the NIC"
