#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_two_cables.sh - two cables between two nodes: each message is striped over both.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

MESSAGE_BYTES=$((4 << 20))
MESSAGES=8
# The cable with less traffic carries at least an eighth of the packets that the data needs: the
# plugin gives more to whichever is faster at the moment, and the emulation is uneven.
SHARE=$((MESSAGES * MESSAGE_BYTES / 4096 / 8))
NICS=(ab0 ab1)

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}")
faults_init
mesh_node a b
mesh_link a ab0 10.77.1.1/24 b ba0 10.77.1.2/24
mesh_link a ab1 10.77.2.1/24 b ba1 10.77.2.2/24
rdma_up
for try in {1..5}; do
	before=()
	for nic in "${NICS[@]}"; do before+=("$(rdma_counter "$nic" sent_pkts)"); done
	transfer $MESSAGE_BYTES $MESSAGES
	! uses "${NICS[@]}" || break
	note "try $try: one cable was left out"
done
for i in "${!NICS[@]}"; do
	sent=$(($(rdma_counter "${NICS[i]}" sent_pkts) - before[i]))
	note "rxe_${NICS[i]} sent $sent packets"
	((sent >= SHARE)) ||
		fail "rxe_${NICS[i]} sent $sent packets, not $SHARE"
done
