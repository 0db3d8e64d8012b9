#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed_instead.sh - two nodes communicate over a relay that has RDMA on both sides. It is
# killed, and the kernels have a route over another node, which has no RDMA, nor has NIC br:
# the streams go on over that, by tcp.
. "$(dirname "${BASH_SOURCE[0]}")/../functional/relays.sh"
. "$(dirname "${BASH_SOURCE[0]}")/rdma.sh"

RDMA_NICS="ap ar bp pa pb"

faults_init
two_ways
rdma_up
STREAM_COMMS=2 STREAM_MOST=300000
begin rdma p
grep -q 'path: from=a to=b nic=ap .* via=p provider=verbs;ofi_rxm' "$STREAM_FOLDER/rank0.out" ||
	stream_fail "p does not relay by RDMA"
routes_over_r
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
