# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# launchers.sh - the triangle of the guides, where Slurm, mpirun or torchrun starts the ranks. To be
# sourced.
#
# Nodes n1, n2, n3 with a cable between any two and 192.168.1.10, .11, .12 on eno1, the management
# NIC. Names resolve as Debian's installer leaves them: a machine's own to 127.0.1.1.

# shellcheck source=tests/functional/lib.sh
declare -F mesh_init >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The tools' output is kept here, to examine a failure.
OUT=$MESH_RESULTS/$(basename "$0" .sh)
NODES=(n1 n2 n3)
# $NAMED COMMAND...: runs it in a node where names resolve.
NAMED=$OUT/named

rm -rf "$OUT"
mkdir -p "$OUT"

# launchers_address NODE: on the management network.
launchers_address() { echo "192.168.1.$((9 + ${MESH_NODE_NUMBER[$1]}))"; }

# launchers_hosts NODE: its /etc/hosts.
launchers_hosts() {
	local other

	echo "127.0.0.1 localhost"
	echo "127.0.1.1 $1"
	for other in "${NODES[@]}"; do
		[[ $other == "$1" ]] || echo "$(launchers_address "$other") $other"
	done
}

# A management NIC with the name and the address that the guides use.
launchers_management() {
	local ns=$MESH_PREFIX$1

	ip -n "$ns" link set mgmt0 down
	ip -n "$ns" link set mgmt0 name eno1 up
	ip -n "$ns" address add "$(launchers_address "$1")/24" dev eno1
	ip -n "$ns" route add default via 10.77.0.254
}

launchers_up() {
	local node

	mesh_node "${NODES[@]}"
	mesh_link n1 to_n2 10.77.1.1/24 n2 to_n1 10.77.1.2/24
	mesh_link n2 to_n3 10.77.2.1/24 n3 to_n2 10.77.2.2/24
	mesh_link n3 to_n1 10.77.3.1/24 n1 to_n3 10.77.3.2/24
	for node in "${NODES[@]}"; do
		launchers_management "$node"
		launchers_hosts "$node" >"$OUT/hosts.$node"
	done
	launchers_hosts mgmt >"$OUT/hosts.mgmt"
	# shellcheck disable=SC2016 # expanded in the node
	printf '#!/bin/sh\nmount --bind "%s/hosts.$(hostname)" /etc/hosts && exec "$@"\n' "$OUT" \
		>"$NAMED"
	chmod +x "$NAMED"
	# Programs that the guides call by name.
	export PATH=$MESH_BUILD:$PATH
	cd "$MESH_TOP" || exit 1
}

# launchers_table FILE: fabric_pingpong's table there has every pair, each by its own cable.
launchers_table() {
	local pair

	for pair in "0 .n1. +1 .n2. +to_n2" "0 .n1. +2 .n3. +to_n3" "1 .n2. +0 .n1. +to_n1" \
		"1 .n2. +2 .n3. +to_n3" "2 .n3. +0 .n1. +to_n1" "2 .n3. +1 .n2. +to_n2"; do
		grep -qE "$pair 10\..*ok$" "$1" || { cat "$1"; fail "no pair '$pair'"; }
	done
}

# launchers_command NAME COMMAND...: from now on NAME, in the nodes too, is COMMAND.
launchers_command() {
	mkdir -p "$OUT/bin"
	printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$OUT/bin/$1"
	chmod +x "$OUT/bin/$1"
	[[ $PATH == "$OUT/bin:"* ]] || PATH=$OUT/bin:$PATH
}

# launchers_shorten FILE: fabric_pingpong in there only checks; to measure takes a minute.
launchers_shorten() { sed -i 's/fabric_pingpong/& --check --check-max 16K/' "$1"; }

# launchers_torch: from now on python3 is one that has PyTorch. Status 1 if there is none.
launchers_torch() {
	local python

	while read -r python; do
		"$python" -c 'import torch.distributed' 2>/dev/null || continue
		launchers_command python3 "$python"
		return 0
	done < <(type -ap python3)
	return 1
}
