#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_provider_fallback.sh - both ends have RDMA and it does not get through: an error, or tcp
# where the setting allows it.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

RUN_ARGS=(--timeout 120 --check-max 64K --check-every 2 --sizes "8,64K" --iters 4 --repeat 1
	--verbose)

mesh_init
mesh_up line 2
rdma_up
roce_lose a ab
RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=15 NCCL_MESH_ACCEPT_TIMEOUT=20)
ranks_refuse stops 120 "gave up connecting from (ab|ba)" a b -- "${RUN_ARGS[@]}"
note "RDMA at both ends does not get through: an error"
RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=60 "NCCL_MESH_PROVIDER=verbs;ofi_rxm,tcp")
ranks_pass falls a b -- "${RUN_ARGS[@]}"
expect_cable falls 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
expect_check
said falls "path: from=a to=b .* provider=tcp"
said falls "uses tcp with node .*verbs;ofi_rxm does not get through, and NCCL_MESH_PROVIDER allows"
note "NCCL_MESH_PROVIDER=verbs;ofi_rxm,tcp: every byte is right, by tcp, and a WARN says why"
