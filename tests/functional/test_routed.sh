#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_routed.sh - nodes without a common subnet that the kernels' routes connect: all pairs run, on
# the NICs that the routes choose, and never where a direct path is up.
# seconds: 90
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# No relay helps: the routes lead everywhere, or nothing does.
export NCCL_MESH_RELAY=off

# Of a ring's 12 and a line's 20 pairs four have all sizes.
RUN_ARGS=(--timeout 60 --check-max 64K --check-every 4 --sizes "8,64K" --iters 8 --repeat 1)

# sent NODE NIC: what it has sent, in bytes.
sent() { mesh_bytes "$1" "$2" tx; }

# --- a ring and a line in which the kernels forward

# A ring of four: two ways lead to the opposite node, and both are used.
test_ring() {
	local x y mgmt

	mesh_up ring 4
	mesh_forward a b c d
	mesh_route a 10.77.2.0/24 10.77.1.2 ab
	mesh_route a 10.77.3.0/24 10.77.4.1 ad
	mesh_route b 10.77.3.0/24 10.77.2.2 bc
	mesh_route b 10.77.4.0/24 10.77.1.1 ba
	mesh_route c 10.77.4.0/24 10.77.3.2 cd
	mesh_route c 10.77.1.0/24 10.77.2.1 cb
	mesh_route d 10.77.1.0/24 10.77.4.2 da
	mesh_route d 10.77.2.0/24 10.77.3.1 dc
	mgmt=$(sent a mgmt0)
	ranks_pass ring a b c d -- "${RUN_ARGS[@]}"
	expect_cable ring 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_cable ring 1 2 "bc:10.77.2.1" "cb:10.77.2.2"
	expect_cable ring 2 3 "cd:10.77.3.1" "dc:10.77.3.2"
	expect_cable ring 3 0 "da:10.77.4.1" "ad:10.77.4.2"
	expect_paths ring 0 2 "ab:10.77.1.1>10.77.2.2@routed" "ad:10.77.4.2>10.77.3.1@routed"
	expect_paths ring 2 0 "cb:10.77.2.2>10.77.1.1@routed" "cd:10.77.3.1>10.77.4.2@routed"
	expect_paths ring 1 3 "ba:10.77.1.2>10.77.4.1@routed" "bc:10.77.2.1>10.77.3.2@routed"
	expect_paths ring 3 1 "da:10.77.4.1>10.77.1.2@routed" "dc:10.77.3.2>10.77.2.1@routed"
	expect_check
	(($(sent a mgmt0) - mgmt < 2000000)) || fail "the management network carried data"
	note "ring of 4: neighbours over their own cable, opposite nodes over both ways round"
}

# Neighbours a and b alone: nothing passes through the other nodes.
test_neighbours() {
	local before

	before=$(($(sent b bc) + $(sent a ad)))
	ranks_pass neighbours a b -- --timeout 60 --sizes 4M --iters 8 --repeat 1 --no-check
	expect_cable neighbours 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	expect_check
	(($(sent b bc) + $(sent a ad) - before < 100000)) ||
		fail "data of neighbours left by other cables than theirs"
	note "neighbours: all bytes over their own cable"
}

# A setting refuses such paths.
test_off() {
	RANKS_ENV=(NCCL_MESH_ROUTED=off NCCL_MESH_CONNECT_TIMEOUT=10 NCCL_MESH_ACCEPT_TIMEOUT=10)
	ranks_refuse off 60 "no common subnet" a c -- "${RUN_ARGS[@]}"
	RANKS_ENV=()
	note "NCCL_MESH_ROUTED=off: refused"
}

# What a sends to cb would leave by ab, and the answer would leave c by cd: no path.
test_one_way() {
	ip -n "$(mesh_ns c)" route replace 10.77.1.0/24 via 10.77.3.2 dev cd
	ip -n "$(mesh_ns c)" route replace 10.77.4.0/24 via 10.77.2.1 dev cb
	RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=10 NCCL_MESH_ACCEPT_TIMEOUT=10)
	ranks_refuse one-way 60 "route back to us leaves by another NIC" a c -- "${RUN_ARGS[@]}"
	note "routes that differ between the two directions: refused, with the cause"
	RANKS_ENV=(NCCL_MESH_ROUTED=management)
	ranks_pass reserve a c -- "${RUN_ARGS[@]}"
	expect_cable reserve 0 1 "mgmt0:10.77.0.1" "mgmt0:10.77.0.3"
	expect_check
	RANKS_ENV=()
	note "the management network, where it is allowed, follows when these are refused"
}

test_line() {
	local i names=(a b c d e) from to

	mesh_up line 5
	mesh_forward a b c d e
	# Node i's cable to the right is subnet i+1; it is .1 there, and .2 on its left cable.
	for from in 0 1 2 3 4; do
		for to in 1 2 3 4; do
			if ((to > from + 1)); then
				mesh_route "${names[from]}" 10.77.$to.0/24 10.77.$((from + 1)).2 \
					"${names[from]}${names[from + 1]}"
			elif ((to < from)); then
				mesh_route "${names[from]}" 10.77.$to.0/24 10.77.$from.1 \
					"${names[from]}${names[from - 1]}"
			fi
		done
	done
	ranks_pass line a b c d e -- "${RUN_ARGS[@]}"
	for from in 0 1 2 3 4; do
		for to in 0 1 2 3 4; do
			if ((to > from)); then
				i=${names[from]}${names[from + 1]}:10.77.$((from + 1)).1
				i+=">10.77.$to.2"
			elif ((to < from)); then
				i=${names[from]}${names[from - 1]}:10.77.$from.2
				i+=">10.77.$((to + 1)).1"
			else
				continue
			fi
			((to - from == 1 || from - to == 1)) || i+=@routed
			expect_paths line $from $to "$i"
		done
	done
	expect_check
	note "line of 5: all 20 pairs, neighbours over their own cable"
}

# --- leaves and spines

RATE=300 # Mbit/s of each NIC towards its leaf, so that not the CPU decides
SPEEDS=(--sizes 4M --iters 8 --repeat 1 --check-max 256K --check-every 6 --timeout 120)

# Nodes a and b are on leaf1, c and d on leaf2. NIC k of node n has 10.77.n.2k/31, its leaf the
# other address. Rails 1 and 3 cross spine1, rails 2 and 4 spine2. A node's routes are plain: what
# goes to rail k of another node leaves by rail k.
make_fabric() {
	local nodes=(a b c d) n k m leaf other s

	mesh_node a b c d
	for s in leaf1 leaf2 spine1 spine2; do mesh_namespace_add "$(mesh_ns $s)"; done
	for n in 1 2; do
		mesh_link leaf$n up1 10.77.$((30 + n)).0/31 spine1 down$n 10.77.$((30 + n)).1/31
		mesh_link leaf$n up2 10.77.$((30 + n)).2/31 spine2 down$n 10.77.$((30 + n)).3/31
	done
	for n in 1 2 3 4; do
		leaf=leaf$(((n + 1) / 2))
		for k in 1 2 3 4; do
			mesh_link "${nodes[n - 1]}" r$k 10.77.$n.$((2 * k))/31 \
				$leaf n${n}r$k 10.77.$n.$((2 * k + 1))/31
		done
	done
	mesh_forward leaf1 leaf2 spine1 spine2
	for n in 1 2 3 4; do
		leaf=$(((n + 1) / 2)) other=$((3 - (n + 1) / 2))
		for k in 1 2 3 4; do
			s=$((2 - k % 2))
			mesh_route leaf$other 10.77.$n.$((2 * k))/31 \
				10.77.$((30 + other)).$((2 * s - 1)) up$s
			mesh_route spine$s 10.77.$n.$((2 * k))/31 \
				10.77.$((30 + leaf)).$((2 * s - 2)) down$leaf
			for m in 1 2 3 4; do
				((m == n)) || mesh_route "${nodes[m - 1]}" 10.77.$n.$((2 * k))/31 \
					10.77.$m.$((2 * k + 1)) r$k
			done
		done
	done
}

# rails_sent NODE: what each of its rails has sent, in one line.
rails_sent() { bytes_sent "$1" r1 r2 r3 r4; }

# fabric_is_even NODE...: all pairs talk at once, and each node's rails carry the same.
fabric_is_even() {
	local node uneven=0
	local -A before

	for node in "$@"; do before[$node]=$(rails_sent "$node"); done
	ranks_pass fabric "$@" -- "${SPEEDS[@]}"
	for node in "$@"; do
		even "$node" "${before[$node]}" "$(rails_sent "$node")" || uneven=1
	done
	return $uneven
}

test_fabric() {
	local nodes=(a b c d) node n m k paths attempt=1

	make_fabric
	for node in "${nodes[@]}"; do
		for k in 1 2 3 4; do mesh_shape "$node" r$k ${RATE}mbit; done
	done
	# A machine that stops the ranks now and then makes a rail slow; a wrong choice is uneven
	# each time.
	until fabric_is_even "${nodes[@]}"; do
		((attempt++ < 3)) || fail "the rails of a node do not carry the same, three times"
	done
	for n in 1 2 3 4; do
		for m in 1 2 3 4; do
			((n != m)) || continue
			paths=()
			for k in 1 2 3 4; do
				paths+=("r$k:10.77.$n.$((2 * k))>10.77.$m.$((2 * k))@routed")
			done
			expect_paths fabric $((n - 1)) $((m - 1)) "${paths[@]}"
		done
	done
	expect_check
	note "leaves and spines: all 12 pairs on all four rails, each rail with the same load"
}

# What has the address of NIC k leaves by NIC k, so that routes connect all pairs; b has lost its
# first two NICs. NCCL_MESH_RAILS says which of a's belong to the other two.
test_rails() {
	local nodes=(a b) n k rails

	for n in 1 2; do
		for k in 1 2 3 4; do
			ip -n "$(mesh_ns "${nodes[n - 1]}")" rule add \
				from 10.77.$n.$((2 * k)) table $((100 + k))
			ip -n "$(mesh_ns "${nodes[n - 1]}")" route add default \
				via 10.77.$n.$((2 * k + 1)) dev r$k table $((100 + k))
		done
	done
	ip -n "$(mesh_ns b)" link set r1 down
	ip -n "$(mesh_ns b)" link set r2 down
	rails=10.77.1.4/31+10.77.2.4/31,10.77.1.6/31+10.77.2.6/31,10.77.1.8/31+10.77.2.8/31
	RANKS_ENV=(NCCL_MESH_RAILS="$rails")
	ranks_pass rails a b -- "${RUN_ARGS[@]}"
	expect_paths rails 0 1 "r3:10.77.1.6>10.77.2.6@routed" "r4:10.77.1.8>10.77.2.8@routed"
	expect_paths rails 1 0 "r3:10.77.2.6>10.77.1.6@routed" "r4:10.77.2.8>10.77.1.8@routed"
	expect_check
	RANKS_ENV=(NCCL_MESH_RAILS=10.77.1.300/31)
	ranks_refuse bad-rails 30 'NCCL_MESH_RAILS: "10.77.1.300/31" is not a subnet' a b -- \
		"${RUN_ARGS[@]}"
	RANKS_ENV=()
	note "NCCL_MESH_RAILS: four NICs and two, the pairs of one rail"
}

# again: removes the namespaces; the next shape starts from nothing.
again() {
	local ns

	for ns in "${MESH_NAMESPACES[@]}"; do mesh_namespace_delete "$ns"; done
	MESH_NAMESPACES=() MESH_NODE_NUMBER=() MESH_LINKS=0
}

mesh_init
test_ring
test_neighbours
test_off
test_one_way
again
test_line
again
test_fabric
test_rails
