#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cable_instead.sh - the only RDMA cable between two nodes has no carrier while a comm is made,
# which goes over a relay that has no RDMA: when the cable is back, the comm moves to it. Every byte
# is checked.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

# Of the largest messages that are small on tcp, and not so on RDMA.
SIZES=(12K 1M)

# Node r has no RDMA, so neither have the cables to it.
rdma_nics() {
	case $1 in
	a) echo ab ;;
	b) echo ba ;;
	esac
}

# transfers COUNT: so many messages of each size.
transfers() {
	local i

	for i in "${!SIZES[@]}"; do echo "transfer $i ${SIZES[i]} $1 5"; done
}

# scene ROLE NODE: a comm that carries messages over the relay, and over the cable.
scene() {
	printf '%s\n' "limit $TRANSFER_MS" "init 0" "touch $FAULTS/open.$2" "await $FAULTS/away"
	meet "$1" "${SIZES[@]}"
	transfers 3
	printf '%s\n' "touch $FAULTS/carried.$2" "await $FAULTS/back"
	transfers 20
	printf '%s\n' "dereg 0" "dereg 1" "close 0"
	[[ $1 != listen ]] || echo "close-listen 0"
	echo "finalize 0"
}

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}" MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
	"NCCL_MESH_NICS=ab,ar,ba,br,ra,rb")
faults_init
mesh_node a b r
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
mesh_link a ar 10.77.2.1/24 r ra 10.77.2.2/24
mesh_link b br 10.77.3.1/24 r rb 10.77.3.2/24
rdma_up
relays r r
play a a < <(scene connect a)
play b b < <(scene listen b)
arrives open.a open.b
ip -n "${MESH_PREFIX}b" link set ba down
touch "$FAULTS/away"
arrives carried.a carried.b
said a INFO "path: from=a to=b nic=ar .*via=r .*provider=tcp"
unsaid a INFO "path: from=a to=b nic=ab"
ip -n "${MESH_PREFIX}b" link set ba up
wait_for "grep -Eq '^INFO .*path: from=a to=b nic=ab .*provider=verbs' $FAULTS/a.log" 120 ||
	faults_show "the comm gets no path over ab"
touch "$FAULTS/back" "$FAULTS/over"
ended a
ended b
ended r
note "a comm over relays without RDMA moves to a cable that has it"
