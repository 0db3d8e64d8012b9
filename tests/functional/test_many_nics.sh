#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_many_nics.sh - more NICs with IPv6 than the handle has room for, which is four: the others
# are used as well, also where only they share a link.
# seconds: 20
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# --dev 0: the first NIC is the first one in the handle.
RUN_ARGS=(--timeout 60 --check-max 16K --check-every 2 --sizes "8,256K" --iters 8 --repeat 1
	--dev 0)

# Node b's first four NICs lead elsewhere, and the fifth one to a.
test_fifth() {
	local k

	mesh_namespace_add "$(mesh_ns z)"
	for k in 1 2 3 4; do mesh_link b x$k fd77:$k::1/64 z z$k fd77:$k::2/64; done
	mesh_link b x5 fd77:5::1/64 a ab fd77:5::2/64
	ranks_pass fifth a b -- "${RUN_ARGS[@]}" --verbose
	said fifth "4 of 5 NICs fit into the handle"
	expect_cable fifth 0 1 "ab:fd77:5::2" "x5:fd77:5::1"
	expect_check
	note "only the fifth NIC shares a link: found by asking the neighbours"
	RANKS_ENV=(NCCL_MESH_NEIGHBOURS=off NCCL_MESH_CONNECT_TIMEOUT=10)
	RANKS_ENV+=(NCCL_MESH_ACCEPT_TIMEOUT=10)
	ranks_refuse silent 60 \
		"node a cannot connect to node b .*no common subnet.*4 of its 5 NICs" \
		a b -- "${RUN_ARGS[@]}" --pairs 0-1
	RANKS_ENV=()
	note "without neighbours: an error that names both nodes and the cause"
}

# The fourth one leads to a as well: HELLO names the fifth.
test_hello() {
	uncable b x4
	mesh_link b x4 fd77:4::1/64 a ba fd77:4::2/64
	RANKS_ENV=(NCCL_MESH_NEIGHBOURS=off)
	ranks_pass hello a b -- "${RUN_ARGS[@]}"
	RANKS_ENV=()
	expect_paths hello 0 1 "ab:fd77:5::2>fd77:5::1" "ba:fd77:4::2>fd77:4::1"
	expect_paths hello 1 0 "x5:fd77:5::1>fd77:5::2" "x4:fd77:4::1>fd77:4::2"
	expect_check
	note "a NIC of the handle leads there: the NICs of HELLO are used beside it"
}

mesh_init
mesh_node a b
test_fifth
test_hello
