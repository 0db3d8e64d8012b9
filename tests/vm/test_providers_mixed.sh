#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_providers_mixed.sh - nodes with and without RDMA in one communicator: each link uses the best
# provider that both of its ends have, also after a node has lost an RDMA device.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

RUN_ARGS=(--pairs "0-1,1-0,1-2,2-1" --timeout 120 --check-max 64K --check-every 4
	--sizes "8,64K" --iters 4 --repeat 1 --verbose)

# Node c has no RDMA; later b's NIC towards a has none either.
RDMA_NICS="ab ba bc"

# took RUN FROM TO PROVIDER
took() { said "$1" "path: from=$2 to=$3 .* via=direct provider=$4"; }

# never RUN WORDS: no rank says this.
never() {
	! cat "$OUT/$1"/rank*.out | grep -E -e "$2" || fail "run $1 says '$2'"
}

expect_both() {
	expect_cable "$1" 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_cable "$1" 1 2 "bc:10.77.2.1" "cb:10.77.2.2"
	expect_check
}

mesh_init
mesh_up line 3
rdma_up
ranks_pass mixed a b c -- "${RUN_ARGS[@]}"
expect_both mixed
took mixed a b "verbs;ofi_rxm"
took mixed b a "verbs;ofi_rxm"
took mixed b c tcp
took mixed c b tcp
said mixed "bc uses tcp with node c .*no RDMA at that end"
never mixed "ab uses tcp"
(($(cat "$OUT"/mixed/rank*.out | grep -c "uses tcp with node c") == 1)) ||
	fail "more than one WARN for one link"
note "a and b by RDMA, b and c by tcp, in one communicator"

kill "$(<"$RDMA_HOLDERS/b.pid")"
rm -rf "$RDMA_HOLDERS/b.pid" "${RDMA_HOLDERS:?}/b"
rdma link delete rxe_ba || fail "cannot delete b's RDMA device"
RDMA_NICS="ab bc"
rdma_node_hold b
ranks_pass lost a b c -- "${RUN_ARGS[@]}"
expect_both lost
took lost a b tcp
took lost b a tcp
said lost "ab uses tcp with node b .*no RDMA at that end"
note "b's RDMA device towards a deleted: that link runs on tcp, and a says so"
