#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_abi.sh - each version of NCCL's net ABI over verbs, every byte checked.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

mesh_init
pair_up
for abi in {6..12}; do
	before=$(rdma_counter ba rcvd_pkts)
	ranks_pass "v$abi" a b -- --timeout 60 --abi "$abi" --check-max 16K --check-every 4 \
		--sizes 8,256K --iters 10 --repeat 1 --verbose
	said "v$abi" "plugin 'Mesh' .*net ABI v$abi,"
	expect_cable "v$abi" 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_check
	(($(rdma_counter ba rcvd_pkts) - before > 2 * 10 * 64)) || fail "v$abi: rxe_ba was not used"
	note "v$abi: right"
done
