#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_dead_route.sh - three nodes in a line with RDMA. The kernels have routes between both ends,
# and the node between forwards TCP and takes RoCE for its own, as real NICs do: the ends go over
# its process, by RDMA.
# long: tests/functional/test_dead_route.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

RUN_ARGS=(--timeout 120 --check-max 64K --check-every 2 --sizes "8,64K" --iters 4
	--repeat 1 --verbose
	--pairs "0-2,2-0")

mesh_init
mesh_up line 3
mesh_forward b
mesh_route a 10.77.2.0/24 10.77.1.2 ab
mesh_route c 10.77.1.0/24 10.77.2.1 cb
# Here it is lost on its way out of b.
roce_lose b bc 10.77.1.1/32
roce_lose b ba 10.77.2.2/32
rdma_up
ranks_pass taken a b c -- "${RUN_ARGS[@]}"
said taken "path: from=a to=c nic=ab .* via=b provider=verbs;ofi_rxm"
said taken "path: from=c to=a nic=cb .* via=b provider=verbs;ofi_rxm"
said taken "the routes to node [ac] .*let nothing through for [0-9]+ ms: going over relays"
note "RoCE does not pass node b: a and c go over its process by RDMA, every byte right"

# Tcp would pass, and is allowed: a relay with RDMA on both sides comes before it. Neighbours first:
# so the NICs are open before the relay is asked, which has 10 s.
RANKS_ENV=("NCCL_MESH_PROVIDER=verbs;ofi_rxm,tcp")
ranks_pass allowed a b c -- "${RUN_ARGS[@]}" --pairs "0-1,1-2,0-2,2-0"
said allowed "path: from=a to=c nic=ab .* via=b provider=verbs;ofi_rxm"
said allowed "path: from=c to=a nic=cb .* via=b provider=verbs;ofi_rxm"
note "the same where the setting allows tcp"
