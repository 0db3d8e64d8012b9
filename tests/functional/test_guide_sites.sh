#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_guide_sites.sh - the commands of docs/guides/two-sites.md work, on the two sites it
# describes: a switch and a router in each, a line between the routers.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/guide.sh"

OUT=$MESH_BUILD/functional/test_guide_sites

make_sites() {
	local node

	mesh_node a b c d
	mesh_namespace_add "$(mesh_ns router1)"
	mesh_namespace_add "$(mesh_ns router2)"
	mesh_switch site1 a enp1s0f0np0 10.1.0.1/24 b enp1s0f0np0 10.1.0.2/24 \
		router1 lan 10.1.0.254/24
	mesh_switch site2 c enp1s0f0np0 10.2.0.1/24 d enp1s0f0np0 10.2.0.2/24 \
		router2 lan 10.2.0.254/24
	mesh_link router1 line 10.77.30.1/30 router2 line 10.77.30.2/30
	mesh_forward router1 router2
	mesh_route router1 10.2.0.0/24 10.77.30.2 line
	mesh_route router2 10.1.0.0/24 10.77.30.1 line
	for node in a b c d; do
		mesh_addresses "$node" mgmt0 "192.168.1.$((9 + MESH_NODE_NUMBER[$node]))/24"
	done
}

command -v ping >/dev/null || skip "'ping' is missing (scripts/install-deps.sh)"
mesh_init
rm -rf "$OUT"
mkdir -p "$OUT"
make_sites
guide_works two-sites.md 6 "0 .a. +1 .b. +enp1s0f0np0 10.1.0.1 -> 10.1.0.2 .* ok$" \
	"0 .a. +3 .d. +enp1s0f0np0 10.1.0.1 -> 10.2.0.2 .* ok$" \
	"1 .b. +2 .c. +enp1s0f0np0 10.1.0.2 -> 10.2.0.1 .* ok$" \
	"2 .c. +3 .d. +enp1s0f0np0 10.2.0.1 -> 10.2.0.2 .* ok$"
(($(mesh_bytes router1 line tx) > 10000000)) || fail "the line between the sites carried nothing"
