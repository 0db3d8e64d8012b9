#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_dense.sh - two nodes with a NIC for each rank on a routed fabric, and two NUMA nodes in
# sysfs: a rank uses the NICs near the one that NCCL named and opens no others, and all NICs carry
# the same. Prints how many domains a process opens, and how evenly the NICs carry.
#
# DENSE_NICS     NICs and ranks of each node (default 4)
# DENSE_BEFORE   "1": also without the rule (NCCL_MESH_NEAR=off), for the figures
# DENSE_RXM      "1": also on tcp;ofi_rxm
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

NICS=${DENSE_NICS:-4}
HALF=$((NICS / 2)) # of a NUMA node
LAST=$((NICS - 1))
RATE=200 # Mbit/s of each NIC, so that not the CPU decides
BUSY=10  # percent of a core: with less for each process the ranks do not connect in time
mapfile -t RANKS < <(yes a | head -n "$NICS" && yes b | head -n "$NICS")
mapfile -t NAMES < <(seq -f r%.0f 0 $LAST)

# Ranks see the node's /sys as a server with two sockets would have it: half of the NICs on each.
# shellcheck disable=SC2016 # expanded by the inner shell
mesh_exec() {
	exec ip netns exec "$MESH_PREFIX$1" unshare --uts --mount \
		sh -c 'mount --bind "$1" /sys && hostname "$0" && shift &&
			NCCL_MESH_NODE_NAME=$0 exec "$@"' "$1" "$OUT/sys" "${@:2}"
}

make_sysfs() {
	local k slot device

	mkdir -p "$OUT/sys/bus/pci" "$OUT/sys/class/net"
	for ((k = 0; k < NICS; k++)); do
		slot=$(printf %02x $((16 * (k / HALF) + 4 * (k % HALF) + 1)))
		device=devices/pci0000:$slot/0000:$slot:01.0
		device+=/0000:$(printf %02x $((0x$slot + 1))):00.0
		mkdir -p "$OUT/sys/$device" "$OUT/sys/class/net/r$k"
		ln -s "$OUT/sys/bus/pci" "$OUT/sys/$device/subsystem"
		ln -s "../../../$device" "$OUT/sys/class/net/r$k/device"
		echo $((k / HALF)) >"$OUT/sys/$device/numa_node"
		echo $RATE >"$OUT/sys/class/net/r$k/speed"
	done
}

# NIC k of node n has 10.77.n.2k/31, and the router that joins all of them the other address. What
# has the address of NIC k leaves by NIC k, whereto it may go.
make_fabric() {
	local nodes=(a b) n k

	mesh_node a b
	mesh_namespace_add "$(mesh_ns fabric)"
	for n in 1 2; do
		for ((k = 0; k < NICS; k++)); do
			mesh_link "${nodes[n - 1]}" r$k 10.77.$n.$((2 * k))/31 \
				fabric n${n}r$k 10.77.$n.$((2 * k + 1))/31
			ip -n "$(mesh_ns "${nodes[n - 1]}")" rule add from 10.77.$n.$((2 * k)) \
				table $((100 + k))
			ip -n "$(mesh_ns "${nodes[n - 1]}")" route add default \
				via 10.77.$n.$((2 * k + 1)) dev r$k table $((100 + k))
			mesh_shape "${nodes[n - 1]}" r$k ${RATE}mbit
		done
	done
	mesh_forward fabric
}

# Within a node NCCL uses shared memory.
all_to_all() {
	local i j

	for ((i = 0; i < NICS; i++)); do
		for ((j = NICS; j < 2 * NICS; j++)); do
			printf '%d-%d,%d-%d,' "$i" "$j" "$j" "$i"
		done
	done | sed 's/,$//'
}

# all_ranks RUN ARGUMENT...: an all-to-all, which has to pass unless the machine is busy.
all_ranks() {
	local run=$1 before after

	shift
	before=$(core_share)
	! run_ranks "$OUT/$run" "${RANKS[@]}" -- --verbose --dev rank --channels 1 --all-at-once \
		--pairs "$(all_to_all)" --no-check --repeat 1 --timeout 120 --json "$@" || return 0
	after=$(core_share)
	((before >= BUSY && after >= BUSY)) ||
		skip "this machine is busy: a process gets $before and $after % of a core"
	ranks_show "$OUT/$run"
	fail "run $run: ranks ended with ${RANKS_STATUS[*]}"
}

# measure RUN NEAR PROVIDER SIZE ITERS: an all-to-all of all ranks.
measure() {
	local run=$1 before_a before_b uneven=

	RANKS_ENV=(NCCL_MESH_NEAR="$2" NCCL_MESH_PROVIDER="$3" NCCL_MESH_NICS=r)
	before_a=$(bytes_sent a "${NAMES[@]}") before_b=$(bytes_sent b "${NAMES[@]}")
	all_ranks "$run" --sizes "$4" --iters "$5"
	even "$run" "$before_a" "$(bytes_sent a "${NAMES[@]}")" || uneven=1
	even "$run" "$before_b" "$(bytes_sent b "${NAMES[@]}")" || uneven=1
	[[ $run != near || ! $uneven ]] || fail "run $run: the NICs do not carry the same"
	note "$run: at most $(opened "$run") domains in a process"
	RANKS_ENV=()
}

# opened RUN: how many domains the rank with the most has opened.
opened() {
	local rank

	for rank in "${!RANKS[@]}"; do
		grep -c 'NIC [0-9]*: r[0-9]* uses' "$OUT/$1/rank$rank.out"
	done | sort -n | tail -1
}

# near RUN: each pair took the NICs that are near the rank's own.
near() {
	python3 - "$OUT/$1/rank0.out" $HALF <<-'END' || fail "run $1: a rank used a far NIC"
		import json, sys
		text = open(sys.argv[1], encoding="utf-8", errors="replace").read()
		report = json.loads(text[text.index("{\n"):text.rindex("\n}") + 2])
		half = int(sys.argv[2])
		def near(pair):
		    nics = [int(path["nic"][1:]) for path in pair["paths"]]
		    own = pair["from"] // half % 2
		    return len(nics) == half and all(n // half == own for n in nics)
		far = [pair for pair in report["pairs"] if not near(pair)]
		print("\n".join(map(str, far[:3])))
		sys.exit(bool(far))
	END
}

mesh_init
make_sysfs
make_fabric
measure near auto tcp 1M 4
near near
said near "path: .* why=near"
(($(opened near) == HALF)) || fail "more domains than those of the near NICs were opened"
if [[ ${DENSE_BEFORE:-} ]]; then
	measure all off tcp 1M 4
	(($(opened all) == NICS)) || fail "with NCCL_MESH_NEAR=off not all NICs were used"
fi
# Figures only: two cores take longer than 10 s for 128 domains, and late ones are left out.
[[ ! ${DENSE_RXM:-} ]] || for near in off auto; do
	measure "rxm-$near" $near "tcp;ofi_rxm" 1M 4
done
note "each rank uses the NICs of its NUMA node, and opens no others"
