#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_guides.sh - the commands of docs/guides/hardware.md work, on the triangle it describes.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/guide.sh"

GUIDE=hardware.md
OUT=$MESH_BUILD/functional/test_guides
# The pairs share the sizes that are checked, and each measurement is short.
SHORT=(--check-every 6 --seconds 0.02 --repeat 1)
export PATH=$OUT/bin:$MESH_BUILD:$PATH

# A triangle as the guide has it, before the cables have addresses.
make_nodes() {
	local node

	mesh_node a b c
	mesh_link a enp1s0f0np0 - b enp1s0f0np0 -
	mesh_link a enp1s0f1np1 - c enp1s0f0np0 -
	mesh_link b enp1s0f1np1 - c enp1s0f1np1 -
	for node in a b c; do
		mesh_addresses "$node" mgmt0 "192.168.1.$((9 + MESH_NODE_NUMBER[$node]))/24"
	done
}

for tool in ping ethtool fi_info; do
	command -v $tool >/dev/null || skip "'$tool' is missing (scripts/install-deps.sh)"
done
mesh_init
rm -rf "$OUT"
mkdir -p "$OUT"
pingpong_short "$OUT/bin" "${SHORT[@]}"
make_nodes
cd "$OUT" || exit 1
guide_type "$GUIDE" "$OUT"
((GUIDE_TYPED >= 10)) || fail "only $GUIDE_TYPED blocks were found in $GUIDE"
for pair in "0 .a. +1 .b. +enp1s0f0np0 192.168.101.1 -> 192.168.101.2" \
	"0 .a. +2 .c. +enp1s0f1np1 192.168.100.1 -> 192.168.100.2" \
	"1 .b. +2 .c. +enp1s0f1np1 192.168.102.1 -> 192.168.102.2"; do
	wait_for "cat '$OUT'/*.stays | grep -qE '$pair'" 60 ||
		{ cat "$OUT"/*.stays; fail "no pair '$pair' in fabric_pingpong's table"; }
done
note "$GUIDE_TYPED blocks worked, $GUIDE_LEFT were left; each pair used its own cable"
