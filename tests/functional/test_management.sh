#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_management.sh - which NIC is the management network's, and that it carries data only if
# NCCL_MESH_ROUTED says so, between nodes that nothing else connects.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 16K --check-every 2 --sizes "8,256K" --iters 10 --repeat 1)

# As fast as the cables, and with the default route. NCCL_SOCKET_IFNAME names it and all cables, as
# some guides have it.
test_named() {
	mesh_up triangle
	[[ $(on a cat /sys/class/net/mgmt0/speed) == "$(on a cat /sys/class/net/ab/speed)" ]] ||
		skip "the management network is not as fast as the cables"
	RANKS_ENV=("NCCL_SOCKET_IFNAME=mgmt0,a,b,c")
	on a env "${RANKS_ENV[@]}" "$MESH_BUILD/fi_mesh" nics >"$OUT/nics"
	grep -q "has the default route" "$OUT/nics" || fail "$(cat "$OUT/nics")"
	ranks_pass named a b c -- "${RUN_ARGS[@]}"
	expect_triangle named
	expect_check
	note "NCCL_SOCKET_IFNAME names all NICs: each pair on its own cable alone"
}

# Without the cable between a and c: an error that names the setting, and the setting.
test_allowed() {
	uncable a ac
	ranks_refuse not-allowed 60 \
		"no common subnet.*NCCL_MESH_ROUTED=management on all nodes" \
		a c -- "${RUN_ARGS[@]}"
	RANKS_ENV+=(NCCL_MESH_ROUTED=management)
	ranks_pass allowed a b c -- "${RUN_ARGS[@]}"
	expect_cable allowed 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_cable allowed 1 2 "bc:10.77.2.1" "cb:10.77.2.2"
	expect_cable allowed 2 0 "mgmt0:10.77.0.3" "mgmt0:10.77.0.1"
	expect_check
	note "NCCL_MESH_ROUTED=management: only the pair without a cable uses that network"
}

# Allowed, and not used: shown by the bytes.
test_unused() {
	local before sent

	before=$(mesh_bytes a mgmt0 tx)
	ranks_pass unused a b -- --timeout 60 --sizes 4M --iters 8 --repeat 1 --no-check
	sent=$(($(mesh_bytes a mgmt0 tx) - before))
	expect_cable unused 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_check
	((sent < 1000000)) || fail "the management network carried $sent bytes"
	note "a cable is up: the management network carries none of the data"
}

mesh_init
test_named
test_allowed
test_unused
