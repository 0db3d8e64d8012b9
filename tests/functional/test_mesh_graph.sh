#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_mesh_graph.sh - `fi_mesh topo` without files finds the mesh by asking from node to node: a
# ring, a torus, a switch; what flaps, what does not answer, and IPv4 alone.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

MESH=$MESH_BUILD/fi_mesh

# topo NODE [ARGUMENT...]: its output is in $FAULTS/out.
topo() {
	local node=$1

	shift
	on "$node" timeout 60 "$MESH" topo "$@" >"$FAULTS/out" 2>"$FAULTS/err"
}

# found NODE CABLE...: topo at NODE finds exactly these cables, "X-Y" each.
found() {
	local node=$1

	shift
	topo "$node" --json
	[[ $? -le 1 ]] && python3 - "$FAULTS/out" "$@" <<-'PY'
		import json, sys
		root = json.load(open(sys.argv[1]))
		ends = [sorted(end["node"] for end in link["ends"]) for link in root["links"]]
		wanted = [sorted(cable.split("-")) for cable in sys.argv[2:]]
		sys.exit(sorted(ends) != sorted(wanted))
	PY
}

# expect_found NODE CABLE...: the same, or a failure; a link that has just come up loses datagrams.
expect_found() {
	wait_for "found $*" 30 || fail "not found: $*: $(cat "$FAULTS/out" "$FAULTS/err")"
}

# drawn_down NODE LINKS NIC...: topo at NODE draws just these NICs as down, on so many links.
drawn_down() {
	local node=$1

	shift
	topo "$node" --json
	[[ $? == 1 ]] && python3 - "$FAULTS/out" "$@" <<-'PY'
		import json, sys
		root = json.load(open(sys.argv[1]))
		down = [nic for node in root["nodes"] for nic in node["nics"]
		        if nic["state"] == "down"]
		links = {nic["link"] for nic in down} - {None}
		sys.exit(sorted(nic["name"] for nic in down) != sorted(sys.argv[3:]) or
		         len(links) != int(sys.argv[2]))
	PY
}

expect_down() {
	wait_for "drawn_down $*" 30 ||
		fail "not drawn as down: $*: $(cat "$FAULTS/out" "$FAULTS/err")"
}

cables() {
	local cable

	for cable in "$@"; do
		mesh_link "${cable%-*}" "${cable/-/}" "${ADDRESSES:-}" "${cable#*-}" \
			"${cable#*-}${cable%-*}" "${ADDRESSES:-}"
	done
}

faults_init

# A ring of 6, with nothing but link-local addresses.
mesh_node a b c d e f
RING=(a-b b-c c-d d-e e-f f-a)
cables "${RING[@]}"
serve b c d e f
expect_found a "${RING[@]}"
topo a
grep -q '^a .* b ba' "$FAULTS/out" || fail "$(cat "$FAULTS/out")"
grep -qE '^a +b +.*the only one: one cable' "$FAULTS/out" || fail "$(cat "$FAULTS/out")"
topo a --svg
grep -q '</svg>' "$FAULTS/out" || fail "no picture"
# A cable is pulled at its far end: seen from a, three nodes away; and it comes back.
ip -n "$(mesh_ns d)" link set dc down
expect_found a a-b b-c d-e e-f f-a
expect_down a 0 cd
ip -n "$(mesh_ns d)" link set dc up
expect_found a "${RING[@]}"
# d ends: neither of its cables is known, and its neighbours are no longer said to have them.
end_serving d
expect_found a a-b b-c e-f f-a
# c is stopped: it is named, and the rest is found.
kill -STOP "${SERVED[c]}"
expect_found a a-b e-f f-a
kill -CONT "${SERVED[c]}"
serve d
expect_found a "${RING[@]}"
end_serving b c d e f
# Two hosts with one name.
serve b c -- NCCL_MESH_NODE_NAME=localhost
wait_for "topo a; grep -q 'the name localhost: set NCCL_MESH_NODE_NAME on one' $FAULTS/err" 30 ||
	fail "$(cat "$FAULTS/out" "$FAULTS/err")"
end_serving b c
note "ring of 6"

# A torus of 3x3, with addresses; from its middle.
mesh_node n0 n1 n2 n3 n4 n5 n6 n7 n8
TORUS=()
for i in 0 1 2 3 4 5 6 7 8; do
	TORUS+=("n$i-n$((i / 3 * 3 + (i + 1) % 3))" "n$i-n$(((i + 3) % 9))")
done
for n in "${!TORUS[@]}"; do
	cable=${TORUS[n]}
	mesh_link "${cable%-*}" "${cable/-/}" "10.78.$n.1/24" "${cable#*-}" \
		"${cable#*-}${cable%-*}" "10.78.$n.2/24"
done
serve n0 n1 n2 n3 n5 n6 n7 n8
expect_found n4 "${TORUS[@]}"
# A cable is down: neither end answers the other, and it is drawn, by another node and by an end.
ip -n "$(mesh_ns n1)" link set n1n2 down
expect_down n4 1 n1n2 n2n1
expect_down n1 1 n1n2 n2n1
ip -n "$(mesh_ns n1)" link set n1n2 up
expect_found n4 "${TORUS[@]}"
end_serving n0 n1 n2 n3 n5 n6 n7 n8
note "torus of 3x3"

# A line where no node has IPv6.
mesh_node p q r
for node in p q r; do
	on "$node" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
		net.ipv6.conf.default.disable_ipv6=1
done
mesh_link p pq 10.79.1.1/24 q qp 10.79.1.2/24
mesh_link q qr 10.79.2.1/24 r rq 10.79.2.2/24
serve q r
expect_found p p-q q-r
end_serving q r
# A rank answers for q now, and nothing for r.
play q rank <<-END
	listen 0 $FAULTS/rank
	await $FAULTS/rank-done
	close-listen 0
END
arrives rank
expect_found p p-q
ip -n "$(mesh_ns r)" link set rq down
expect_down p 0 qr
ip -n "$(mesh_ns r)" link set rq up
expect_found p p-q
touch "$FAULTS/rank-done"
ended rank
note "a line without IPv6"

# The plugin's error asks whether the nodes between relay; it comes within seconds.
mesh_node u v w
cables u-v v-w
mesh_addresses u uv 10.79.11.1/24
mesh_addresses v vu 10.79.11.2/24
mesh_addresses v vw 10.79.12.1/24
mesh_addresses w wv 10.79.12.2/24
serve v
play w listener <<-END
	listen 0 $FAULTS/far
	await $FAULTS/done
	close-listen 0
END
wait_for "[[ -e $FAULTS/far ]]" 60 || fail "w does not listen"
play u connector <<-END
	limit 30000
	! connect 0 $FAULTS/far
END
ended connector
touch "$FAULTS/done"
ended listener
said connector WARN "no common subnet.*do the nodes between them relay \\(NCCL_MESH_RELAY\\)"
note "no path: $(grep -hEm1 '^WARN' "$FAULTS/connector.log")"
end_serving v
