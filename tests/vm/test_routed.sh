#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed.sh - routed paths beside RDMA: one communicator of four nodes in a line, of which two
# share a cable with RDMA, and two nodes with RDMA behind a router.
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/../functional/lib.sh"
# shellcheck source=tests/vm/rdma.sh
. "$here/rdma.sh"
# shellcheck source=tests/functional/expect.sh
. "$here/../functional/expect.sh"

RUN_ARGS=(--timeout 120 --check-max 64K --sizes "8,64K" --iters 4 --repeat 1 --verbose)

# Nodes a and b have RDMA on their cable. Without it are c, d and b's other NIC.
rdma_nics() {
	case $1 in
	a) echo ab ;;
	b) echo ba ;;
	c) [[ ! $FAR ]] || echo cb ;;
	esac
}
FAR=

# took RUN FROM TO KIND PROVIDER
took() { said "$1" "path: from=$2 to=$3 .* via=$4 provider=$5"; }

# Node K's cable to the right is subnet K; its left end is .1.
test_four() {
	mesh_up line 4
	mesh_forward b c
	mesh_route a 10.77.2.0/24 10.77.1.2 ab
	mesh_route a 10.77.3.0/24 10.77.1.2 ab
	mesh_route b 10.77.3.0/24 10.77.2.2 bc
	mesh_route c 10.77.1.0/24 10.77.2.1 cb
	mesh_route d 10.77.1.0/24 10.77.3.1 dc
	mesh_route d 10.77.2.0/24 10.77.3.1 dc
	rdma_up
	ranks_pass four a b c d -- "${RUN_ARGS[@]}"
	expect_paths four 0 1 "ab:10.77.1.1>10.77.1.2"
	expect_paths four 1 0 "ba:10.77.1.2>10.77.1.1"
	expect_paths four 1 2 "bc:10.77.2.1>10.77.2.2"
	expect_paths four 2 1 "cb:10.77.2.2>10.77.2.1"
	expect_paths four 2 3 "cd:10.77.3.1>10.77.3.2"
	expect_paths four 3 2 "dc:10.77.3.2>10.77.3.1"
	expect_paths four 0 2 "ab:10.77.1.1>10.77.2.2@routed"
	expect_paths four 2 0 "cb:10.77.2.2>10.77.1.1@routed"
	expect_paths four 1 3 "bc:10.77.2.1>10.77.3.2@routed"
	expect_paths four 3 1 "dc:10.77.3.2>10.77.2.1@routed"
	expect_paths four 0 3 "ab:10.77.1.1>10.77.3.2@routed"
	expect_paths four 3 0 "dc:10.77.3.2>10.77.1.1@routed"
	expect_check
	took four a b direct "verbs;ofi_rxm"
	took four b a direct "verbs;ofi_rxm"
	took four b c direct tcp
	took four c d direct tcp
	took four a d routed tcp
	took four d a routed tcp
	said four "bc has no RDMA and carries the data with node c"
	note "a and b by RDMA, b and c and d by tcp, a and d routed, in one communicator"
}

mesh_init
test_four
