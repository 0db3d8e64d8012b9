#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_triangle.sh - three nodes, each cable an RDMA link: all six directions over verbs.
#
# Each direction's data must cross its own pair of RDMA devices as RDMA writes, and nothing may
# cross another. Three sources are compared: the plugin, the devices' counters, the packets
# themselves.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

NODES=(a b c)
NICS=(ab ba bc cb ac ca)
SIZE_BYTES=$((1 << 20))
MESSAGES=8
# As many packets as the data needs at least; each packet carries 4096 bytes of it.
LEAST=$((MESSAGES * SIZE_BYTES / 4096))

# The counters of all devices but these.
others_packets() {
	local nic quiet=()

	for nic in "${NICS[@]}"; do
		[[ $nic == "$1" || $nic == "$2" ]] || quiet+=("$nic")
	done
	rdma_packets "${quiet[@]}"
}

# direction FROM TO: indices of the nodes. One direction alone.
direction() {
	local x=${NODES[$1]} y=${NODES[$2]} run sent received others writes sends
	local from=$x$y to=$y$x

	run=$from
	rdma_quiet "${NICS[@]}"
	others=$(others_packets "$from" "$to")
	sent=$(rdma_counter "$from" sent_pkts)
	received=$(rdma_counter "$to" rcvd_pkts)
	rdma_count "$x" "$from"
	ranks_pass "$run" a b c -- --pairs "$1-$2" --timeout 60 --no-check --sizes $SIZE_BYTES \
		--iters $MESSAGES --repeat 1 --channels 1
	rdma_count_end "$from"
	sent=$(($(rdma_counter "$from" sent_pkts) - sent))
	received=$(($(rdma_counter "$to" rcvd_pkts) - received))
	((sent >= LEAST && received >= LEAST)) ||
		fail "$x to $y: rxe_$from sent $sent, rxe_$to received $received, not $LEAST"
	[[ $(others_packets "$from" "$to") == "$others" ]] ||
		fail "$x to $y: other devices moved: $others, now $(others_packets "$from" "$to")"
	writes=$(rdma_counted "$from" sent writes)
	sends=$(rdma_counted "$from" sent sends)
	((writes >= MESSAGES)) || fail "$x to $y: $writes RDMA writes for $MESSAGES messages"
	# What went as messages is control, of a few hundred bytes: the data is not in there.
	note "$x to $y: $sent packets, $writes writes, $sends sends; the other devices: none"
}

mesh_init
mesh_up triangle
rdma_up
ranks_pass all a b c -- --timeout 60 --check-max 4K --check-every 2 --sizes 8,64K,1M \
	--iters 4 --repeat 1 --verbose
i=0
for pair in "0 1" "1 2" "2 0"; do
	read -r from to <<<"$pair"
	x=${NODES[from]} y=${NODES[to]} link=$((++i))
	expect_cable all "$from" "$to" "$x$y:10.77.$link.1" "$y$x:10.77.$link.2"
done
expect_check
said all "verbs;ofi_rxm"
note "all six directions: every byte is right"
for pair in "0 1" "1 0" "1 2" "2 1" "2 0" "0 2"; do
	# shellcheck disable=SC2086 # two indices
	direction $pair
done
