#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cable_joins.sh - one of two RDMA cables has no carrier while a comm is made: the comm goes
# over the other one, and gets a path over this one when it is back. Every byte is checked.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

# scene ROLE NODE: a comm that carries messages of 1 MiB with the other cable alone, and with both.
scene() {
	printf '%s\n' "limit $TRANSFER_MS" "init 0" "touch $FAULTS/open.$2" "await $FAULTS/away"
	meet "$1" 1M
	printf '%s\n' "transfer 0 1M 3 5" "touch $FAULTS/carried.$2" "await $FAULTS/back"
	printf '%s\n' "transfer 0 1M 20 5" "dereg 0" "close 0"
	[[ $1 != listen ]] || echo "close-listen 0"
	echo "finalize 0"
}

transfer_two_cables
play a a < <(scene connect a)
play b b < <(scene listen b)
arrives open.a open.b
ip -n "${MESH_PREFIX}b" link set bx down
touch "$FAULTS/away"
arrives carried.a carried.b
said a INFO "path: from=a to=b nic=ab .*provider=verbs"
unsaid a INFO "path: from=a to=b nic=ax"
ip -n "${MESH_PREFIX}b" link set bx up
wait_for "grep -Eq '^INFO .*path: from=a to=b nic=ax .*provider=verbs' $FAULTS/a.log" 120 ||
	faults_show "the comm gets no path over ax"
touch "$FAULTS/back"
ended a
ended b
note "a cable with RDMA that was away joins the comm"
