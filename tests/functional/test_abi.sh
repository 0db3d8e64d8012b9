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
	expect_paths "v$abi" 0 1 "ab:10.77.1.1>10.77.1.2"
	expect_paths "v$abi" 1 0 "ba:10.77.1.2>10.77.1.1"
	expect_paths "v$abi" 1 2 "bc:10.77.2.1>10.77.2.2"
	expect_paths "v$abi" 2 1 "cb:10.77.2.2>10.77.2.1"
	expect_paths "v$abi" 2 0 "ca:10.77.3.1>10.77.3.2"
	expect_paths "v$abi" 0 2 "ac:10.77.3.2>10.77.3.1"
	note "net ABI v$abi: all six pairs right"
done
expect_check
