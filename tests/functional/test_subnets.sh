#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_subnets.sh - the real prefix decides: /30, /31, peers, IPv6, both families. Cables with
# link-local addresses alone are in test_link_local.sh.
# seconds: 20
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 8K --check-every 2 --sizes "8,256K" --iters 8 --repeat 1)

# triangle RUN AB BA BC CB CA AC: xy's address is that of x's NIC towards y. All pairs run, with
# NCCL's choice of devs, and every pair has to be on its own cable.
triangle() {
	local run=$1 ab=$2 ba=$3 bc=$4 cb=$5 ca=$6 ac=$7

	mesh_link a ab "$ab" b ba "$ba"
	mesh_link b bc "$bc" c cb "$cb"
	mesh_link c ca "$ca" a ac "$ac"
	ranks_pass "$run" a b c -- "${RUN_ARGS[@]}"
	expect_cable "$run" 0 1 "ab:${ab%/*}" "ba:${ba%/*}"
	expect_cable "$run" 1 2 "bc:${bc%/*}" "cb:${cb%/*}"
	expect_cable "$run" 2 0 "ca:${ca%/*}" "ac:${ac%/*}"
	uncable_triangle
	expect_check
	note "$run: all six pairs, each on its own cable"
}

uncable_triangle() {
	uncable a ab
	uncable b bc
	uncable c ca
}

# peer NODE NIC ADDR PEER/PLEN: a point-to-point link.
peer() {
	ip -n "$MESH_PREFIX$1" address add "$3" peer "$4" dev "$2" || fail "no address for $1 $2"
}

# Both ends of a cable name each other, and have no subnet.
test_peers() {
	mesh_link a ab - b ba -
	mesh_link b bc - c cb -
	mesh_link c ca - a ac -
	peer a ab 10.77.1.1 10.77.1.2/32
	peer b ba 10.77.1.2 10.77.1.1/32
	peer b bc fd77:2::1 fd77:2::2/128
	peer c cb fd77:2::2 fd77:2::1/128
	peer c ca 10.77.3.1 10.77.9.2/32
	peer a ac 10.77.9.2 10.77.3.1/32
	ranks_pass peers a b c -- "${RUN_ARGS[@]}"
	expect_cable peers 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_cable peers 1 2 "bc:fd77:2::1" "cb:fd77:2::2"
	expect_cable peers 2 0 "ca:10.77.3.1" "ac:10.77.9.2"
	ranks_pass peers-one-node a a -- "${RUN_ARGS[@]}"
	uncable_triangle
	expect_check
	note "peers: point-to-point addresses, each on its own cable, and two ranks of one node"
}

# The addresses are on macvlans; the NICs below them have link-local ones, as the kernel gives them,
# and count as no second cable.
test_macvlan() {
	local node nic

	mesh_link a ab - b ba -
	for node in a b; do
		nic=ab
		[[ $node == a ]] || nic=ba
		wait_for "[[ \$(mesh_link_local $node $nic) ]]" 60 || fail "$nic has no address"
		ip -n "$MESH_PREFIX$node" link add mv0 link "$nic" type macvlan mode bridge ||
			{ note "macvlan: SKIP, not in this kernel"; uncable a ab; return; }
		ip -n "$MESH_PREFIX$node" link set mv0 up
	done
	mesh_addresses a mv0 10.77.1.1/30
	mesh_addresses b mv0 10.77.1.2/30
	ranks_pass macvlan a b -- "${RUN_ARGS[@]}"
	expect_cable macvlan 0 1 "mv0:10.77.1.1" "mv0:10.77.1.2"
	uncable a ab
	expect_check
	note "macvlan: both ways over the macvlans alone"
}

mesh_init
mesh_node a b c
triangle "30-in-one-24" 10.77.9.1/30 10.77.9.2/30 10.77.9.5/30 \
	 10.77.9.6/30 10.77.9.9/30 10.77.9.10/30
triangle "31" 10.77.9.0/31 10.77.9.1/31 10.77.9.2/31 10.77.9.3/31 10.77.9.4/31 10.77.9.5/31
triangle "ula-127" fd77::/127 fd77::1/127 fd77::2/127 fd77::3/127 fd77::4/127 fd77::5/127
triangle "families-mixed" 10.77.1.1/24 10.77.1.2/24 fd77:2::1/64 \
	 fd77:2::2/64 10.77.3.1/24 10.77.3.2/24
# a's NIC towards c, and c's, have b's and the management network's addresses in their subnet.
triangle "24-in-16" 10.77.1.1/24 10.77.1.2/24 10.77.2.1/24 \
	 10.77.2.2/24 10.77.200.1/16 10.77.200.2/16
test_peers
test_macvlan

# The commonest mistake: packets for one cable leave over another, and the error says so.
RANKS_ENV+=(NCCL_MESH_CONNECT_TIMEOUT=6 NCCL_MESH_ACCEPT_TIMEOUT=8)
mesh_link a ab 10.77.7.1/24 b ba 10.77.7.2/24
mesh_link b bc 10.77.7.3/24 c cb 10.77.7.4/24
mesh_link c ca 10.77.7.5/24 a ac 10.77.7.6/24
ranks_refuse one-subnet 60 \
	"10.77.7.1/24 and 10.77.7.6/24 of node a share one subnet.*a subnet of its own" \
	a c -- "${RUN_ARGS[@]}"
note "$(grep -h 'share one subnet' "$OUT"/one-subnet/rank*.out | head -1)"
