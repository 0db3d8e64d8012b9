#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_four_nodes.sh - four nodes, three NICs each, fully meshed: every random cabling works.
#
# A cabling says which NIC of each node goes to which neighbour, and which subnet each cable has.
# NICs stay; a namespace with bridges is the patch panel that they are moved on. MESH_SEED repeats
# a run, MESH_CABLINGS says how many.
# seconds: 50
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

NODES=(a b c d)
SEED=${MESH_SEED:-$((SRANDOM & 0x7fff))}
CABLINGS=${MESH_CABLINGS:-$(slow && echo 8 || echo 50)}
RUN_ARGS=(--timeout 60 --sizes "8,64K" --iters 8 --repeat 1 --no-check)
declare -A PORT # PORT[x eth1]: the NIC's port in the patch panel
declare -A NIC  # NIC[xy]: the NIC of x that goes to y
declare -A ADDR # ADDR[xy]: its address

make_panel() {
	local i node nic

	mesh_node "${NODES[@]}"
	mesh_namespace_add "${MESH_PREFIX}patch"
	for i in {0..5}; do mesh_bridge "${MESH_PREFIX}patch" "br$i"; done
	for node in "${NODES[@]}"; do
		for nic in eth{1..3}; do
			mesh_attach patch br0 "$node" "$nic" -
			PORT[$node $nic]=p$MESH_LINKS
		done
	done
}

# A random order of the words.
shuffle() {
	local words=("$@") i k word

	for ((i = $# - 1; i > 0; i--)); do
		k=$((RANDOM % (i + 1)))
		word=${words[i]} words[i]=${words[k]} words[k]=$word
	done
	SHUFFLED=("${words[@]}")
}

# choose_cabling: fills NIC and ADDR.
choose_cabling() {
	local node other i k subnet

	for node in "${NODES[@]}"; do
		shuffle eth1 eth2 eth3
		for other in "${NODES[@]}"; do
			[[ $node != "$other" ]] || continue
			NIC[$node$other]=${SHUFFLED[0]}
			SHUFFLED=("${SHUFFLED[@]:1}")
		done
	done
	shuffle {1..200}
	for i in {0..3}; do
		for ((k = i + 1; k < 4; k++)); do
			subnet=${SHUFFLED[0]}
			SHUFFLED=("${SHUFFLED[@]:1}")
			ADDR[${NODES[i]}${NODES[k]}]=10.77.$subnet.1
			ADDR[${NODES[k]}${NODES[i]}]=10.77.$subnet.2
		done
	done
}

# One batch for the panel and one for each node; down and up forgets the old neighbours.
apply_cabling() {
	local node other cable=0 i k panel=""

	for i in {0..3}; do
		for ((k = i + 1; k < 4; k++)); do
			for node in "${NODES[i]}${NODES[k]}" "${NODES[k]}${NODES[i]}"; do
				port=${PORT[${node:0:1} ${NIC[$node]}]}
				panel+="link set $port master br$cable"$'\n'
			done
			((cable++))
		done
	done
	ip -n "${MESH_PREFIX}patch" -batch - <<<"$panel" || fail "cannot patch the cables"
	for node in "${NODES[@]}"; do
		for other in "${NODES[@]}"; do
			[[ $node != "$other" ]] || continue
			echo "link set ${NIC[$node$other]} down"
			echo "address flush dev ${NIC[$node$other]}"
			echo "address add ${ADDR[$node$other]}/24 dev ${NIC[$node$other]}"
			echo "link set ${NIC[$node$other]} up"
		done | ip -n "$MESH_PREFIX$node" -batch - || fail "cannot set up $node"
	done
}

cabling_text() {
	local node other text=""

	for node in "${NODES[@]}"; do
		text+=" $node:"
		for other in "${NODES[@]}"; do
			[[ $node == "$other" ]] || text+=" $other=${NIC[$node$other]}"
		done
	done
	echo "$text"
}

run_cabling() {
	local i k x y args=("${RUN_ARGS[@]}")

	# Every other time the pairs go one by one.
	((number % 2)) || args+=(--all-at-once)
	ranks_pass "$number" "${NODES[@]}" -- "${args[@]}"
	for i in {0..3}; do
		for k in {0..3}; do
			x=${NODES[i]} y=${NODES[k]}
			[[ $x == "$y" ]] || expect_paths "$number" "$i" "$k" \
				"${NIC[$x$y]}:${ADDR[$x$y]}>${ADDR[$y$x]}"
		done
	done
}

mesh_init
echo "seed $SEED (MESH_SEED=$SEED repeats this run)"
RANDOM=$SEED
make_panel
for ((number = 0; number < CABLINGS; number++)); do
	choose_cabling
	cabling_text >"$OUT/cabling$number"
	apply_cabling
	run_cabling
done
expect_check
note "$CABLINGS random cablings of four nodes: all 12 ordered pairs right, each on its own cable"
