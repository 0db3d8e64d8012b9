#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_abi.sh - each version of NCCL's net ABI passes the same run on the triangle.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

CHECK_MAX=$(slow && echo 8K || echo 64K)
# All differences lie between the oldest and the newest; no thread is in any of them.
VERSIONS=({6..12})
[[ $MESH_BUILD != *thread* ]] || VERSIONS=(6 12)

mesh_init
mesh_up triangle
for abi in "${VERSIONS[@]}"; do
	ranks_pass "v$abi" a b c -- --timeout 60 --abi "$abi" --check-max "$CHECK_MAX" \
		--check-every 6 --sizes 8,64K,1M --iters 10 --repeat 1 --verbose
	said "v$abi" "plugin 'Mesh' .*net ABI v$abi,"
	expect_triangle "v$abi"
	note "net ABI v$abi: all six pairs right"
done
expect_check
