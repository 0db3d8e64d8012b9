#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed_instead.sh - two nodes communicate over a relay that has RDMA on both sides. It is
# killed, and the kernels have a route over another node, which has no RDMA, nor has NIC br:
# the streams go on over that, by tcp.
. "$(dirname "${BASH_SOURCE[0]}")/../functional/relays.sh"
. "$(dirname "${BASH_SOURCE[0]}")/rdma.sh"

rdma_nics() {
	case $1 in
	a) echo ap ar ;;
	b) echo bp ;;
	p) echo pa pb ;;
	esac
}

faults_init
mesh_node a b p r
mesh_link a ap 10.77.1.1/24 p pa 10.77.1.2/24
mesh_link p pb 10.77.2.1/24 b bp 10.77.2.2/24
mesh_link a ar 10.77.3.1/24 r ra 10.77.3.2/24
mesh_link r rb 10.77.4.1/24 b br 10.77.4.2/24
rdma_up
STREAM_COMMS=2 STREAM_MOST=300000
begin rdma p
grep -q 'path: from=a to=b nic=ap .* via=p provider=verbs;ofi_rxm' "$STREAM_FOLDER/rank0.out" ||
	stream_fail "p does not relay by RDMA"
mesh_forward r
mesh_route a 10.77.4.0/24 10.77.3.2 ar
mesh_route b 10.77.3.0/24 10.77.4.1 br
signal p KILL
for rank in 0 1; do
	wait_for "grep -qE 'path: from=[ab] to=[ab] nic=[ab]r .* via=routed provider=tcp' \
		$STREAM_FOLDER/rank$rank.out" 120 || stream_fail "rank $rank does not go over r"
done
moves 60000
pause 1
moves 60000
note "relay p, with RDMA, is killed: on over the kernel of r, by tcp"
stream_stop
stream_ends
touch "$FAULTS/over"
