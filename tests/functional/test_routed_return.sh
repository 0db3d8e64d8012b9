#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed_return.sh - two nodes on two rails behind routers. A cable of one rail breaks behind
# the router, where neither node sees it, and works again: the connections go on over the other
# rail, and use both again. Every byte is checked. Each rail has two connections, as a long line
# has, which are lost and come back with one message.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

RATE=200mbit
export NCCL_MESH_DEBUG_LANES=2

# Rail K: node a's xK, a router, node b's xK.
rail() {
	local nic=x$1 router=r$1 subnet=10.77.$1 node

	mesh_namespace_add "$(mesh_ns "$router")"
	mesh_link a "$nic" "$subnet.0/31" "$router" left "$subnet.1/31"
	mesh_link b "$nic" "$subnet.2/31" "$router" right "$subnet.3/31"
	mesh_forward "$router"
	mesh_route a "$subnet.2/31" "$subnet.1" "$nic"
	mesh_route b "$subnet.0/31" "$subnet.3" "$nic"
	for node in a b; do mesh_shape $node "$nic" $RATE; done
}

# cut K, mend K: the router of rail K forwards nothing, or all again.
cut() {
	on "r$1" nft "add table inet cut; add chain inet cut forwarded {
		type filter hook forward priority 0; policy drop; }" || fail "nft on r$1"
}
mend() { on "r$1" nft delete table inet cut || fail "nft on r$1"; }

cables_init 0 $RATE
rail 1
rail 2
stream routed 0
for rank in 0 1; do
	grep -q 'via=routed .*lanes=2' "$STREAM_FOLDER/rank$rank.out" ||
		stream_fail "rank $rank: no routed path with two connections"
done
carries x2 20000
cut 2
for rank in 0 1; do
	wait_for "grep -q 'its messages go over the other paths now' \
		$STREAM_FOLDER/rank$rank.out" 60 || stream_fail "rank $rank misses no path"
done
moves 1000
note "rail 2 drops all packets: something arrives after $MOVED_MS ms"
mend 2
carries x2 30000
note "it works again: $CARRIED % of it are used $CARRIED_MS ms later"
stream_stop
stream_ends
mapfile -t lines < <(warned 'its messages go over this path, too')
[[ ${lines[*]} == "1 1" ]] || stream_fail "${lines[*]} lines about the return, not 1 1"
