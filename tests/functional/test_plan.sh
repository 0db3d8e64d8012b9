#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_plan.sh - what `fi_mesh plan` plans is built, configured with its own output, and used.
#
# Each shape is cabled with veth pairs as the plan's wiring says, each node runs the commands of
# `--config ip`, and fabric_pingpong has to pass between all neighbours over the planned addresses.
# Then `fi_mesh topo` has to find the planned cables in what the nodes report.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

NODES=(a b c d e f g h i)
RUN_ARGS=(--timeout 60 --sizes "8,64K" --iters 4 --repeat 1 --no-check)

# wiring PLAN: lines "NODE PORT ADDRESS NODE PORT ADDRESS" of plan.json.
wiring() {
	python3 -c '
import json, sys
for cable in json.load(open(sys.argv[1]))["cables"]:
    print(*[end[key] for end in cable["ends"] for key in ("node", "port", "address")])
' "$1"
}

# topo_cables: lines "NODE PORT NODE PORT SUBNET" of `fi_mesh topo --json` on standard input.
topo_cables() {
	python3 -c '
import json, sys
for link in json.load(sys.stdin)["links"]:
    ends = sorted((end["node"], end["nic"]) for end in link["ends"])
    print(*[text for end in ends for text in end], link["subnet"], link["kind"])
' | sort
}

rank_of() {
	local rank

	for rank in "${!NODES[@]}"; do
		[[ ${NODES[rank]} != "$1" ]] || echo "$rank"
	done
}

# Plugs the cables, and configures every node with the plan's own script.
build_mesh() {
	local plan=$1 count=$2 node x port_x y port_y _

	while read -r x port_x _ y port_y _; do
		mesh_pair "$x" "$port_x" "$y" "$port_y"
	done < <(wiring "$plan/plan.json")
	for node in "${NODES[@]:0:count}"; do
		on "$node" sh "$plan/$node/ip/usr/local/sbin/mesh-addresses" ||
			fail "the commands of the plan fail on $node"
	done
}

unbuild_mesh() {
	local x port _

	while read -r x port _; do uncable "$x" "$port"; done < <(wiring "$1/plan.json")
}

# Every pair of neighbours, in both directions, each over its cable of the plan.
run_neighbours() {
	local name=$1 plan=$2 count=$3 pairs="" x nic_x addr_x y nic_y addr_y r s

	while read -r x nic_x addr_x y nic_y addr_y; do
		r=$(rank_of "$x") s=$(rank_of "$y")
		pairs+="${pairs:+,}$r-$s,$s-$r"
		expect_cable "$name" "$r" "$s" "$nic_x:${addr_x%/*}" "$nic_y:${addr_y%/*}"
	done < <(wiring "$plan/plan.json")
	ranks_pass "$name" "${NODES[@]:0:count}" -- "${RUN_ARGS[@]}" --pairs "$pairs"
	expect_check
}

# What the nodes report, put together, is the plan.
check_topo() {
	local plan=$1 count=$2 node

	mkdir -p "$plan/reports"
	for node in "${NODES[@]:0:count}"; do
		on "$node" "$MESH_BUILD/fi_mesh" nics --json >"$plan/reports/$node.json" ||
			fail "fi_mesh nics on $node"
	done
	"$MESH_BUILD/fi_mesh" topo --svg --dot "$plan/plan.json" >"$plan/both" 2>&1 &&
		fail "fi_mesh topo draws two formats at once"
	grep -q 'svg and --dot exclude each other' "$plan/both" || fail "$(cat "$plan/both")"
	"$MESH_BUILD/fi_mesh" topo --json "$plan/plan.json" | topo_cables >"$plan/cables.planned"
	"$MESH_BUILD/fi_mesh" topo --json "$plan/reports" | topo_cables >"$plan/cables.reported"
	[[ -s $plan/cables.planned ]] || fail "fi_mesh topo finds no cable in the plan"
	diff "$plan/cables.planned" "$plan/cables.reported" ||
		fail "fi_mesh topo sees other cables than planned"
}

# shape NAME COUNT SHAPE OPTION...: plan, build, use, look, take down.
shape() {
	local name=$1 count=$2 shape=$3 plan=$OUT/$1.plan

	shift 3
	"$MESH_BUILD/fi_mesh" plan "$shape" "${NODES[@]:0:count}" "$@" --write "$plan" ||
		fail "fi_mesh plan $shape"
	build_mesh "$plan" "$count"
	run_neighbours "$name" "$plan" "$count"
	check_topo "$plan" "$count"
	unbuild_mesh "$plan"
	note "$name: all neighbours talk over their planned cable, and topo sees the plan"
}

mesh_init
mesh_node "${NODES[@]}"
# Only addresses of this test's own namespaces.
shape triangle 3 triangle --range 10.77.100.0/16
shape k4 4 full --range 10.77.100.0/16 --prefix 30
shape ring6 6 ring --ipv6
shape line5 5 line --range 10.77.100.0/16 --prefix 31 --mtu 1500
shape torus3x3 9 torus:3x3 --range 10.77.100.0/16
