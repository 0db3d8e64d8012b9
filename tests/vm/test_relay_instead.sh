#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_instead.sh - two nodes communicate over the route of their kernels, which has no RDMA:
# when a process starts that relays for them by RDMA, the comm moves to it. Every byte is checked.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

# Node r, which only forwards, has no RDMA, so neither have the cables to it.
RDMA_NICS="ap bp pa pb"

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}" MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
	"NCCL_MESH_NICS=ap,ar,bp,br,pa,pb")
faults_init
two_ways
routes_over_r
rdma_up
transfer_while_away : "nic=ar .*via=routed provider=tcp" \
	"relays p p" "nic=ap .*via=p provider=verbs" 12K 1M
touch "$FAULTS/over"
ended p
note "a comm over a route without RDMA moves to a relay that has it"
