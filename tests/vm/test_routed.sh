#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed.sh - routed paths beside RDMA: one communicator of four nodes in a line, of which two
# share a cable with RDMA, and two nodes with RDMA behind a router.
# long: test_routed_instead; tests/functional/test_routed.sh
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

RUN_ARGS=(--timeout 120 --check-max 64K --check-every 2 --sizes "8,64K" --iters 4 --repeat 1
	--verbose)

# Nodes a and b have RDMA on their cable, and x and y towards their router r. Without it are all
# other NICs.
RDMA_NICS="ab ba xr yr"

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
	ranks_pass four a b c d -- "${RUN_ARGS[@]}" --check-every 6
	expect_cable four 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_cable four 1 2 "bc:10.77.2.1" "cb:10.77.2.2"
	expect_cable four 2 3 "cd:10.77.3.1" "dc:10.77.3.2"
	expect_cable four 0 2 "ab:10.77.1.1" "cb:10.77.2.2" @routed
	expect_cable four 1 3 "bc:10.77.2.1" "dc:10.77.3.2" @routed
	expect_cable four 0 3 "ab:10.77.1.1" "dc:10.77.3.2" @routed
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

# Nodes x and y on either side of router r, which has no RDMA, as routers have none.
far_up() {
	mesh_node x y
	mesh_namespace_add "$(mesh_ns r)"
	mesh_link x xr 10.77.21.1/24 r rx 10.77.21.254/24
	mesh_link y yr 10.77.22.1/24 r ry 10.77.22.254/24
	mesh_forward r
	mesh_route x 10.77.22.0/24 10.77.21.254 xr
	mesh_route y 10.77.21.0/24 10.77.22.254 yr
}

# RUN PROVIDER: both directions took the routed path by this provider.
far_took() {
	expect_cable "$1" 0 1 "xr:10.77.21.1" "yr:10.77.22.1" @routed
	expect_check
	took "$1" x y routed "$2"
	took "$1" y x routed "$2"
}

test_far_rdma() {
	local nic before after

	before=$(rdma_packets xr yr)
	rdma_count x xr
	ranks_pass far x y -- "${RUN_ARGS[@]}"
	rdma_count_end xr
	after=$(rdma_packets xr yr)
	far_took far "verbs;ofi_rxm"
	for nic in sent received; do
		(($(rdma_counted xr $nic writes) > 0)) ||
			fail "no RDMA write was $nic: $before, $after"
	done
	note "x and y by RDMA across a router: $before before, $after after"
}

# The router passes TCP, and no RoCE.
test_far_dropped() {
	roce_lose r ry
	RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=15 NCCL_MESH_ACCEPT_TIMEOUT=20)
	ranks_refuse stops 120 "gave up connecting from (xr|yr) .*does each router on the way" \
		x y -- "${RUN_ARGS[@]}"
	note "RDMA does not pass the router: an error that says so, and names the setting"
	RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=60 "NCCL_MESH_PROVIDER=verbs;ofi_rxm,tcp")
	ranks_pass falls x y -- "${RUN_ARGS[@]}"
	RANKS_ENV=()
	far_took falls tcp
	said falls "uses tcp with node .*verbs;ofi_rxm does not get through, and NCCL_MESH_PROVIDER"
	note "with NCCL_MESH_PROVIDER=verbs;ofi_rxm,tcp: by tcp, and a WARN says why"
}

mesh_init
far_up
test_four
test_far_rdma
test_far_dropped
