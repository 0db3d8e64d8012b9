#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh - builds the plugin and shows it on a switchless triangle of three nodes.
#
# The nodes are network namespaces of this machine, the cables are veth pairs: no GPU, no RDMA NIC
# and no setting is needed. Namespaces need root: it installs and builds as the calling user, and
# continues with sudo. At the end it removes everything that it made except the build.
# Exit status 0 only if every pair of ranks received correct bytes and used its own cable.
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$TOP" || exit 1
# shellcheck source=tests/functional/lib.sh
. tests/functional/lib.sh

OUT=$MESH_BUILD/demo
NODES=(a b c)
CABLES=(ab bc ca)
# Each pair must send this share of all its bytes over its own cable, in percent.
OWN_SHARE=98
# Bytes that a pair must at least have moved for the shares to mean anything.
ENOUGH=$((20 << 20))

step() {
	if [[ -t 1 ]]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi
}
mb() { awk -v b="$1" 'BEGIN {printf "%.1f", b / 1e6}'; }

# Packages and the build, each with its output in a log.
prepare() {
	mkdir -p "$OUT/all" "$OUT"/pair{01,02,10,12,20,21} || exit 1
	echo "installing the packages that are missing (log: $OUT/install.log)"
	scripts/install-deps.sh demo >"$OUT/install.log" 2>&1 ||
		{ cat "$OUT/install.log"; fail "the packages could not be installed"; }
	echo "building (log: $OUT/build.log)"
	scons -Q -j "$(nproc)" >"$OUT/build.log" 2>&1 ||
		{ tail -n 40 "$OUT/build.log"; fail "the build failed ($OUT/build.log)"; }
}

# Continues as root, with everything built.
become_root() {
	((EUID != 0)) || return 0
	command -v sudo >/dev/null || skip "demo.sh needs root, for network namespaces"
	echo "network namespaces need root: continuing with sudo"
	exec sudo MESH_BUILD="$MESH_BUILD" "$TOP/demo.sh" built
}

# Bytes so far on cable $1 in both directions; on the management network for "mgmt".
cable_bytes() {
	local node sum=0

	if [[ $1 == mgmt ]]; then
		for node in "${NODES[@]}"; do
			sum=$((sum + $(mesh_bytes "$node" mgmt0 tx)))
		done
	else
		node=${1:1:1}
		sum=$(($(mesh_bytes "${1:0:1}" "$1" tx) + $(mesh_bytes "$node" "$node${1:0:1}" tx)))
	fi
	echo $sum
}

# All pairs: the first table that fabric_pingpong prints; the sizes one by one are in $OUT.
show_table() {
	run_ranks "$OUT/all" "${NODES[@]}" -- --timeout 30 --sizes 8,64K,4M --repeat 1 ||
		{ ranks_show "$OUT/all"; fail "fabric_pingpong found a fault"; }
	awk '!NF && seen {exit} /^from / {seen = 1} seen' "$OUT/all/rank0.out"
}

# prove_pair FROM TO CABLE: runs one pair alone and prints its bytes on each cable.
prove_pair() {
	local from=$1 to=$2 own=$3 name before=() moved=() i total=0 verdict="own cable"
	local names=("${CABLES[@]}" mgmt) own_bytes=0

	for name in "${names[@]}"; do before+=("$(cable_bytes "$name")"); done
	run_ranks "$OUT/pair$from$to" "${NODES[@]}" -- --timeout 30 --no-check --repeat 1 \
		--iters 20 --sizes 4M --pairs "$from-$to" ||
		{ ranks_show "$OUT/pair$from$to"; fail "pair $from-$to"; }
	for i in "${!names[@]}"; do
		moved+=($(($(cable_bytes "${names[i]}") - before[i])))
		total=$((total + moved[i]))
		[[ ${names[i]} != "$own" ]] || own_bytes=${moved[i]}
	done
	((own_bytes >= ENOUGH && own_bytes * 100 >= total * OWN_SHARE)) ||
		verdict="NOT its own cable" wrong=1
	printf '%8s %10s %10s %10s %12s   %s\n' "${NODES[from]} -> ${NODES[to]}" \
		"$(mb "${moved[0]}")" "$(mb "${moved[1]}")" "$(mb "${moved[2]}")" \
		"$(mb "${moved[3]}")" "$verdict"
}

prove() {
	wrong=0
	printf '%8s %10s %10s %10s %12s\n' MB "cable a-b" "cable b-c" "cable a-c" management
	prove_pair 0 1 ab
	prove_pair 1 0 ab
	prove_pair 1 2 bc
	prove_pair 2 1 bc
	prove_pair 0 2 ca
	prove_pair 2 0 ca
	((wrong == 0)) || fail "a pair left its own cable"
}

[[ ${1:-} == built ]] || prepare
become_root
mesh_init
mesh_up triangle
step "Three nodes, three cables, no switch; each cable is a subnet of its own"
echo "  a(ab) 10.77.1.0/24 (ba)b(bc) 10.77.2.0/24 (cb)c(ca) 10.77.3.0/24 (ac)a"
step "Every pair of ranks over the plugin, checked and measured (no settings)"
show_table
step "Each pair alone: bytes that the interfaces counted, in MB"
prove
step "Every pair used its own cable; the management network carried the rendezvous only."
