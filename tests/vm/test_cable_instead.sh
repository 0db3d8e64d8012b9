#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cable_instead.sh - the only RDMA cable between two nodes has no carrier while a comm is made,
# which goes over a relay that has no RDMA: when the cable is back, the comm moves to it. Every byte
# is checked.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

# Node r has no RDMA, so neither have the cables to it.
RDMA_NICS="ab ba"

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}" MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
	"NCCL_MESH_NICS=ab,ar,ba,br,ra,rb")
faults_init
mesh_node a b r
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
mesh_link a ar 10.77.2.1/24 r ra 10.77.2.2/24
mesh_link b br 10.77.3.1/24 r rb 10.77.3.2/24
rdma_up
relays r r
# The first size is of the largest messages that are small on tcp, and not so on RDMA.
cable() { ip -n "${MESH_PREFIX}b" link set ba "$1"; }
transfer_while_away "cable down" "nic=ar .*via=r .*provider=tcp" \
	"cable up" "nic=ab .*provider=verbs" 12K 1M
touch "$FAULTS/over"
ended r
note "a comm over relays without RDMA moves to a cable that has it"
