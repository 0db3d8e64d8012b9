#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_guide_sites.sh - the commands of docs/guides/two-sites.md work, on the two sites it
# describes: a switch and a router in each, a line between the routers.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/guide.sh"

GUIDE=two-sites.md
OUT=$MESH_BUILD/functional/test_guide_sites
# The pairs share the sizes that are checked, and each measurement is short.
SHORT=(--check-every 12 --seconds 0.02 --repeat 1)
export PATH=$OUT/bin:$MESH_BUILD:$PATH

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
pingpong_short "$OUT/bin" "${SHORT[@]}"
make_sites
cd "$OUT" || exit 1
guide_type "$GUIDE" "$OUT"
((GUIDE_TYPED >= 6)) || fail "only $GUIDE_TYPED blocks were found in $GUIDE"
for pair in "0 .a. +1 .b. +enp1s0f0np0 10.1.0.1 -> 10.1.0.2" \
	"0 .a. +3 .d. +enp1s0f0np0 10.1.0.1 -> 10.2.0.2" \
	"1 .b. +2 .c. +enp1s0f0np0 10.1.0.2 -> 10.2.0.1" \
	"2 .c. +3 .d. +enp1s0f0np0 10.2.0.1 -> 10.2.0.2"; do
	wait_for "cat '$OUT'/*.stays | grep -qE '$pair .* ok$'" 60 ||
		{ cat "$OUT"/*.stays; fail "no pair '$pair' in fabric_pingpong's table"; }
done
(($(mesh_bytes router1 line tx) > 10000000)) || fail "the line between the sites carried nothing"
note "$GUIDE_TYPED blocks worked, $GUIDE_LEFT were left; direct at home, routed across"
