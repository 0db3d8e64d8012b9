#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_guides.sh - the commands of docs/guides/hardware.md work, on the triangle it describes.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/guide.sh"

OUT=$MESH_BUILD/functional/test_guides

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
make_nodes
guide_works hardware.md 10 "0 .a. +1 .b. +enp1s0f0np0 192.168.101.1 -> 192.168.101.2" \
	"0 .a. +2 .c. +enp1s0f1np1 192.168.100.1 -> 192.168.100.2" \
	"1 .b. +2 .c. +enp1s0f1np1 192.168.102.1 -> 192.168.102.2"
