#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed_relay.sh - a ring of five whose kernels forward over node b, by tcp, because b has no
# RDMA: a and c begin there, and go the long way round, over two relays that have it, as soon as
# these have opened it. Without RDMA on that way they stay on the route of the kernels.
# long: test_relay_rdma
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"
. "$(dirname "${BASH_SOURCE[0]}")/../functional/serving.sh"

RUN_ARGS=(--pairs "0-4,4-3,3-2,0-2,2-0" --timeout 120 --check-max 64K --check-every 4
	--sizes "8,64K" --iters 4 --repeat 1 --channels 1 --verbose)

# Node c has no RDMA on its cable to b, so the routes of the kernels have none.
RDMA_NICS="ab ae cd dc de ed ea"

mesh_init
mesh_up ring 5
mesh_forward b
mesh_route a 10.77.2.0/24 10.77.1.2 ab
mesh_route c 10.77.1.0/24 10.77.2.1 cb
rdma_up
AROUND=(
	"path: from=a to=c nic=ae .* via=e,d provider=verbs;ofi_rxm"
	"path: from=c to=a nic=cd .* via=d,e provider=verbs;ofi_rxm"
)
ranks_pass relayed a b c d e -- "${RUN_ARGS[@]}" --repeat 60
for path in "${AROUND[@]}"; do said relayed "$path"; done
note "a and c go over e and d, which have RDMA, rather than over b's kernel"

# `fi_mesh check --peer` finds the same, over services, where the setting makes NIC cb one of
# NCCL's. Figures are not looked at.
serve c -- NCCL_MESH_NICS=cb,cd --relay --listen "$(mesh_mgmt_addr c)"
for node in d e; do serve $node -- --relay --listen "$(mesh_mgmt_addr $node)"; done
check() {
	on a timeout 180 "$MESH_BUILD/fi_mesh" check --peer "$(mesh_mgmt_addr c)" --ms 50 \
		>"$OUT/checked" 2>&1
	grep -qE -e "$1" "$OUT/checked" ||
		fail "check --peer does not say '$1': $(cat "$OUT/checked")"
}
check "no link or route with RDMA to node c: connections go through relays, on 1 route"
check "route over 2 relays: a ae - ea e: verbs;ofi_rxm.* e ed - de d: .* d dc - cd c: "
NCCL_MESH_RELAY=off check "first choice: ab .* tcp .*routed: no subnet in common"
end_serving
note "check --peer: the same"

RANKS_ENV=(NCCL_MESH_RELAY=off)
ranks_pass off a b c d e -- "${RUN_ARGS[@]}"
said off "path: from=a to=c nic=ab .* via=routed provider=tcp"
said off "path: from=c to=a nic=cb .* via=routed provider=tcp"
note "without relays: over b's kernel"

# Where no node between has RDMA on both sides there is nothing better.
RANKS_ENV=()
kill "$(<"$RDMA_HOLDERS/e.pid")"
rm -rf "$RDMA_HOLDERS/e.pid" "${RDMA_HOLDERS:?}/e"
rdma link delete rxe_ed
rdma link delete rxe_ea
ranks_pass routed a b c d e -- "${RUN_ARGS[@]}"
said routed "path: from=a to=c nic=ab .* via=routed provider=tcp"
said routed "path: from=c to=a nic=cb .* via=routed provider=tcp"
note "e has no RDMA any longer: over b's kernel"
