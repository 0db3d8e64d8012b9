#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_halves.sh - ports of two NICs each, as those of DGX Sparks: all commands and the log count
# cables with two halves, and both halves carry data.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

# port X Y N M A B C D: a cable between x and y. The halves of x's end have the addresses A of
# subnet N and B of subnet M, those of y's C of N and D of M.
port() {
	mesh_switch "$1$2" "$1" "$1${2}0" "10.78.$3.$5/24" "$1" "$1${2}1" "10.78.$4.$6/24" \
		"$2" "$2${1}0" "10.78.$3.$7/24" "$2" "$2${1}1" "10.78.$4.$8/24"
}

arp_apart() {
	local node

	for node; do on "$node" sysctl -qw net.ipv4.conf.all.arp_{ignore=1,announce=2}; done
}

# typed STATUS NODE ARGUMENT...: fi_mesh ends with this status; its output is in $OUT/out.
typed() {
	local status=0

	on "$2" timeout 60 "$MESH_BUILD/fi_mesh" "${@:3}" >"$OUT/out" 2>&1 || status=$?
	((status == $1)) || fail "fi_mesh ${*:3} on $2: status $status, not $1: $(cat "$OUT/out")"
}

# has TEXT...: each stands in the output; blanks count as one.
has() {
	local text

	for text; do
		tr -s ' ' <"$OUT/out" | grep -qF -- "$text" ||
			fail "no \"$text\" in: $(cat "$OUT/out")"
	done
}

lacks() { ! grep -E -- "$1" "$OUT/out" || fail "\"$1\" in: $(cat "$OUT/out")"; }

# halves_carry RUN NODE NIC...: while the first of RANKS sends to the one in the middle, each NIC
# carries half of its share at least.
halves_carry() {
	local before after i sum=0 nics=("${@:3}")

	read -ra before <<<"$(bytes_sent "$2" "${nics[@]}")"
	ranks_pass "$1" "${RANKS[@]}" -- --timeout 60 --no-check --sizes 1M --iters 80 --repeat 1 \
		--pairs 0-$((${#RANKS[@]} / 2))
	read -ra after <<<"$(bytes_sent "$2" "${nics[@]}")"
	for i in "${!nics[@]}"; do sum=$((sum + after[i] - before[i])); done
	for i in "${!nics[@]}"; do
		note "$1: ${nics[i]} of node $2: $(((after[i] - before[i]) / 1000000)) MB"
		((2 * ${#nics[@]} * (after[i] - before[i]) >= sum)) || fail "that is too little"
	done
}

# A subnet for each half of each cable.
triangle() {
	local node

	mesh_node a b c
	port a b 1 2 1 1 2 2
	port b c 3 4 1 1 2 2
	port c a 5 6 1 1 2 2
	serve a
	typed 1 a neighbours
	has "ab0 no answer" "no node answers on ab0: it and ab1 of this node hear each other"
	serve b c
	typed 0 a neighbours
	has "ab0 b ba0 10.78.1.2/24" "ab1 b ba1 10.78.2.2/24" "ac0 c ca0" "ac1 c ca1" \
		"ab0 and ab1: the halves of one cable" "ac0 and ac1: the halves of one cable"
	(($(wc -l <"$OUT/out") == 7)) || fail "more than 4 rows: $(cat "$OUT/out")"
	typed 1 a check # NCCL is not told of the plugin
	has "pass neighbours ab1 is cabled to ba1 of node b; the other half of this cable is ab0"
	lacks "(warn|fail|unknown) +neighbours|wire"
	for node in a b c a b c; do
		typed 0 "$node" topo
		has "mesh: 3 nodes, 3 cables of 2 halves each" "one of 2 halves of the cable"
		lacks "nothing|switch|one of 2 cables"
	done
	peer_and_half
	end_serving
	RANKS_ENV=(NCCL_DEBUG=INFO)
	run_ranks "$OUT/log" a b c -- -v --timeout 60 --no-check --sizes 64K ||
		fail "the job over halves"
	said log "Neighbours: ab0 is cabled to node b \(ba0\); ab1 is cabled to node b \(ba1\), a \
half of the same cable as ab0; ac0 is cabled to node c \(ca0\); ac1 is cabled to node c \(ca1\), a"
	RANKS_ENV=()
	RANKS=(a b)
	halves_carry direct a ab0 ab1
}

# check --peer; then one NIC of b's port is down.
peer_and_half() {
	local fix

	typed 1 a check --ms 50 --quiet --peer b
	has "ab0 and ab1 are on one link, and ab0 answers for both addresses"
	fix=$(sed -n 's/^ *do: .*by hand: \(sysctl.*arp_ignore.*\)/\1/p' "$OUT/out" | head -1)
	on a bash -c "$fix" >/dev/null || fail "the command does not work: $fix"
	arp_apart b c
	on a "$MESH_BUILD/fi_mesh" check --ms 50 --peer b >"$OUT/out" 2>&1
	has "cable ab0 - ba0: ab0 is cabled to node b; the other half of this cable is ab1" \
		"not ac1: it is cabled to node c (ca1)"
	lacks "wire|switch|is cabled to node a"
	ip -n "$(mesh_ns b)" link set ba1 down
	wait_for "typed 1 a neighbours; grep -q 'of which only one is up there' $OUT/out" 30 ||
		fail "$(cat "$OUT/out")"
	lacks "^fail|no subnet in common|^ab.*halves"
	on a "$MESH_BUILD/fi_mesh" check --ms 50 --peer b >"$OUT/out" 2>&1
	has "ab1 has no NIC at its other end: node b has only ba0 there"
	typed 1 a topo
	has "3 cables of 2 halves each, 1 down" "ba1 10.78.2.2/24 - down a ab1 (its link is down)"
	lacks "switch"
	ip -n "$(mesh_ns b)" link set ba1 up
}

# Both halves of each port in one subnet: `check` says which rule makes them carry data.
one_subnet() {
	local node

	mesh_node p q
	port p q 11 11 1 2 3 4
	arp_apart p q
	for node in p q; do
		typed 1 "$node" check
		has "two NICs share the subnet, and no source route separates them"
		on "$node" bash -ec "$(sed -n 's/^ *do: *\(ip rule .*\)/\1/p' "$OUT/out")" ||
			fail "the command does not work: $(cat "$OUT/out")"
	done
	serve p q
	typed 0 p neighbours
	has "pq0 q qp0" "pq1 q qp1" "pq0 and pq1: the halves of one cable"
	typed 1 p check
	lacks "(warn|fail) +(shared-subnet|neighbours)"
	end_serving
	RANKS=(p q)
	halves_carry one-subnet p pq0 pq1
}

# What is relayed uses both halves of each cable, and both ways round.
ring() {
	local nic

	mesh_node s t u v
	port s t 21 22 1 1 2 2
	port t u 23 24 1 1 2 2
	port u v 25 26 1 1 2 2
	port v s 27 28 1 1 2 2
	arp_apart s t u v
	serve s t u v
	typed 0 u topo
	has "mesh: 4 nodes, 4 cables of 2 halves each"
	lacks "nothing|switch"
	end_serving
	for nic in st0 st1 sv0 sv1; do mesh_shape s $nic 400mbit; done
	RANKS=(s t u v)
	halves_carry ring s st0 st1 sv0 sv1
	halves_carry behind t tu0 tu1
}

mesh_init
triangle
one_subnet
ring
