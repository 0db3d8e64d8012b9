# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# rdma.sh - a test mesh whose cables carry RDMA, in the virtual machine. To be sourced,
# behind faults.sh of tests/functional if that is needed; it extends the nodes of lib.sh.
#
#	mesh_init; mesh_up triangle	as in tests/functional/lib.sh
#	rdma_up				each cable's NIC xy gets the RDMA device rxe_xy
#	run_ranks, on, mesh_spawn	then see the RDMA devices of their node, and no others
#
# Soft-RoCE devices belong to no network namespace: the RDMA subsystem is shared. So each node is
# given a mount namespace, too, in which /dev and /sys show its own devices only (node_masks). A
# sleeping process in each node holds its namespaces.

# shellcheck source=tests/functional/lib.sh
declare -F mesh_init >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/../functional/lib.sh"

RDMA_HERE=$(dirname "${BASH_SOURCE[0]}")
# Longer times for tests of faults, because everything is emulated.
# shellcheck disable=SC2034 # faults.sh's
FAULTS_SLOW=3
# shellcheck disable=SC2034 # faults.sh's
FAULTS_ENV+=(
	"NCCL_MESH_CONNECT_TIMEOUT=15" "NCCL_MESH_ACCEPT_TIMEOUT=15" "NCCL_MESH_DEAD_PEER_TIMEOUT=8"
)
# Room for an RDMA packet of 4096 bytes with its headers.
# shellcheck disable=SC2034 # lib.sh's
MESH_MTU=4200
# Emulated: minutes on a busy machine.
# shellcheck disable=SC2034 # lib.sh's
RANKS_TIMEOUT=600

[[ ${VM_SCRIPT:-} ]] || \
	skip "this is a test for the virtual machine: tests/vm/run $(basename "$0")"

RDMA_HOLDERS=/run/rdma # <node>.pid: the process that holds a node's namespaces
SYSFS_RDMA=/sys/class/infiniband

# As lib.sh's, with a fork in each round: in the virtual machine bash learns only then that a child
# has ended.
wait_for() {
	local deadline=$((SECONDS + ${2:-10}))

	until eval "$1"; do
		((SECONDS <= deadline)) || return 1
		sleep 0.05
	done
}

# Replaces this process by COMMAND in NODE. Until the node has RDMA devices, its namespaces are
# those of lib.sh.
mesh_exec() {
	local node=$1 holder=$RDMA_HOLDERS/$1.pid

	shift
	if [[ -e $holder ]]; then
		NCCL_MESH_NODE_NAME=$node exec nsenter --target "$(<"$holder")" \
			--net --mount --uts --ipc --wd="$PWD" -- "$@"
	else
		exec ip netns exec "$MESH_PREFIX$node" "$@"
	fi
}

# rdma_nics NODE: the NICs of its cables, or those in RDMA_NICS whose names begin with its name.
rdma_nics() {
	if [[ ${RDMA_NICS-} ]]; then
		tr ' ' '\n' <<<"$RDMA_NICS" | sed -n "/^$1/p"
	else
		ip -n "$MESH_PREFIX$1" -o link show type veth |
			awk -F'[ :@]+' '$2 != "mgmt0" {print $2}'
	fi
}

# The device's address table is filled in the background.
rdma_has_address() {
	grep -qs '0000:0000:0000:0000:0000:ffff' "$SYSFS_RDMA/rxe_$1/ports/1/gids/"*
}

# rdma_device_add NODE NIC: soft-RoCE on a NIC.
rdma_device_add() {
	ip netns exec "$MESH_PREFIX$1" rdma link add "rxe_$2" type rxe netdev "$2" ||
		fail "cannot make an RDMA device of $1 $2"
	wait_for "rdma_has_address $2" 60 || fail "rxe_$2 has no address"
}

# rdma_up: every NIC of every node becomes an RDMA device, and the nodes see only their own.
rdma_up() {
	local node nic

	mkdir -p "$RDMA_HOLDERS"
	for node in "${!MESH_NODE_NUMBER[@]}"; do
		for nic in $(rdma_nics "$node"); do
			rdma_device_add "$node" "$nic"
		done
	done
	for node in "${!MESH_NODE_NUMBER[@]}"; do
		rdma_node_hold "$node"
	done
}

# pair_up: nodes a and b, and one cable.
pair_up() {
	mesh_node a b
	mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
	rdma_up
}

rdma_node_hold() {
	local node=$1 devices=() nic

	for nic in $(rdma_nics "$node"); do
		devices+=("rxe_$nic")
	done
	ip netns exec "$MESH_PREFIX$node" unshare --mount --uts --ipc --propagation private \
		bash "$RDMA_HERE/node_masks" "$node" "$RDMA_HOLDERS" "${devices[@]}" </dev/null &
	wait_for "[[ -e $RDMA_HOLDERS/$node.pid ]]" 60 || fail "node $node does not come up"
}

# rdma_device_renew NODE NIC: takes the RDMA device away, if it is still there, and makes it anew.
rdma_device_renew() {
	local holder=$RDMA_HOLDERS/$1.pid

	kill "$(<"$holder")"
	rm -rf "$holder" "${RDMA_HOLDERS:?}/$1"
	[[ ! -e $SYSFS_RDMA/rxe_$2 ]] || rdma link delete "rxe_$2"
	rdma_device_add "$1" "$2"
	rdma_node_hold "$1"
}

# --- a network that loses RoCE ------------------------------------------------------------------

# roce_prepare NODE NIC: before a transfer. While a queue is exchanged, a packet that is sent may be
# refused with an error, and soft-RoCE then ends the connection.
roce_prepare() {
	ip netns exec "$MESH_PREFIX$1" sh -ec "
		tc qdisc replace dev $2 root handle 1: prio
		tc qdisc add dev $2 parent 1:3 netem loss 100%" || fail "tc qdisc of $1 $2"
}

# roce_drop NODE NIC [ADDRESS]: what it sends, or sends from this address, to RoCE's UDP port is
# lost until roce_pass NODE NIC; all else passes.
roce_drop() {
	ip netns exec "$MESH_PREFIX$1" tc filter add dev "$2" parent 1: protocol ip u32 \
		match ip protocol 17 0xff match ip src "${3:-0.0.0.0/0}" \
		match ip dport 4791 0xffff flowid 1:3 || fail "tc filter of $1 $2"
}

roce_pass() {
	ip netns exec "$MESH_PREFIX$1" tc filter del dev "$2" parent 1: || fail "tc filter of $1 $2"
}

# roce_lose NODE NIC [ADDRESS]: both.
roce_lose() {
	roce_prepare "$1" "$2"
	roce_drop "$@"
}

# --- counters and objects ----------------------------------------------------------------------

# rdma_counter NIC NAME: one of the device's own counters, as sent_pkts or rcvd_pkts.
rdma_counter() { cat "$SYSFS_RDMA/rxe_$1/ports/1/hw_counters/$2"; }

# rdma_objects [KIND...]: how many objects of these kinds (of all) every device holds. Some are
# the kernel's own and always there: a queue pair for the connection manager, its CQ and PD.
rdma_objects() {
	rdma resource show | awk -v kinds="${*:-pd cq qp cm_id mr ctx srq}" '{
		printf "%s", $2
		for (i = 3; i < NF; i += 2)
			if (index(" " kinds " ", " " $i " ")) printf " %s %s", $i, $(i + 1)
		print ""
	}'
}

# rdma_moving NIC [PACKETS]: waits until the device has sent some more.
rdma_moving() {
	local before

	before=$(rdma_counter "$1" sent_pkts)
	wait_for "((before + ${2:-500} < \$(rdma_counter $1 sent_pkts)))" 60 ||
		faults_show "$1 sends nothing"
}

# --- what is on the wire -----------------------------------------------------------------------

declare -A RDMA_COUNTER=() # NIC -> process of its roce_count

# rdma_count NODE NIC: counts the operations that this NIC sends and receives, from now on.
rdma_count() {
	local log=$OUT/count-$2

	mesh_spawn "$1" "$log" "$MESH_BUILD/vm/roce_count" "$2"
	RDMA_COUNTER[$2]=$MESH_SPAWNED
	wait_for "grep -qs counting '$log'" 60 || { cat "$log"; fail "roce_count does not start"; }
}

# rdma_count_end NIC...: ends the counting; then `rdma_counted` prints it.
rdma_count_end() {
	local nic

	for nic in "$@"; do
		kill -TERM "${RDMA_COUNTER[$nic]}"
		wait "${RDMA_COUNTER[$nic]}" || { cat "$OUT/count-$nic"; fail "roce_count $nic"; }
	done
}

# rdma_counted NIC sent|received KIND: sends, writes, reads, atomics, datagrams, acks, immediates.
rdma_counted() {
	awk -v direction="$2" -v kind="$3" '$1 == direction {
		for (i = 2; i < NF; i += 2) if ($i == kind) print $(i + 1)
	}' "$OUT/count-$1"
}

# rdma_quiet NIC...: waits until the devices have moved nothing for a while: what the end of
# connections costs comes late on a busy machine.
rdma_quiet() {
	local before="" still=0 try

	for try in {1..240}; do
		if [[ $(rdma_packets "$@") == "$before" ]]; then ((++still)); else still=0; fi
		((still < 3)) || return 0
		before=$(rdma_packets "$@")
		sleep 0.25
	done
	fail "the RDMA devices still move after $try looks: $before"
}

# rdma_packets NIC...: what each device has sent and received, as "NIC=SENT/RECEIVED ...".
rdma_packets() {
	local nic

	for nic in "$@"; do
		printf '%s=%s/%s ' "$nic" "$(rdma_counter "$nic" sent_pkts)" \
			"$(rdma_counter "$nic" rcvd_pkts)"
	done
}
