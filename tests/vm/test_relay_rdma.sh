#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_rdma.sh - a ring of five, in which the node between two others has no RDMA: they go the
# long way round, over two relays that have it; once that node has it, they go over that one.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

RUN_ARGS=(--pairs "0-2,2-0" --timeout 120 --check-max 64K --check-every 4 --sizes "8,64K"
	--iters 4 --repeat 1 --channels 1 --verbose)

# Node b has no RDMA at first.
RDMA_NICS="ab ae cb cd dc de ed ea"

mesh_init
mesh_up ring 5
rdma_up
# On a busy machine a connection may also go over b: 3 s after e and d were first asked.
ranks_pass long a b c d e -- "${RUN_ARGS[@]}"
said long "path: from=a to=c nic=ae .* via=e,d provider=verbs;ofi_rxm"
said long "path: from=c to=a nic=cd .* via=d,e provider=verbs;ofi_rxm"
note "b has no RDMA: a and c go over e and d, which have it"

kill "$(<"$RDMA_HOLDERS/b.pid")"
rm -rf "$RDMA_HOLDERS/b.pid" "${RDMA_HOLDERS:?}/b"
RDMA_NICS+=" ba bc"
rdma_device_add b ba
rdma_device_add b bc
rdma_node_hold b
ranks_pass short a b c d e -- "${RUN_ARGS[@]}"
said short "path: from=a to=c nic=ab .* via=b provider=verbs;ofi_rxm"
said short "path: from=c to=a nic=cb .* via=b provider=verbs;ofi_rxm"
note "b has RDMA as well: a and c go over b"
