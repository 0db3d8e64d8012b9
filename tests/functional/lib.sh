# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# lib.sh - test meshes of network namespaces, and ranks that run in them. To be sourced.
#
#                    namespace mesh<pid>-mgmt
#                +---- bridge 10.77.0.254/24 ----+      the management network: every node's
#                |            |                  |      default route, as in real machines
#              mgmt0        mgmt0              mgmt0
#             +--+--+ ab   ba +--+--+ bc  cb +--+--+
#             |  a  +--------+|  b  |+-------+  c  |    mesh_up triangle: each cable is a veth
#             +--+--+         +-----+        +--+--+    pair and a subnet of its own
#                | ac                        ca |
#                +------------------------------+
#
# A node is a namespace mesh<pid>-<node>. Everything is made by the script that sources this file
# and removed when that script ends, however it ends; what a killed one left is found by the next.
# Only addresses inside these namespaces are ever used (10.77.x.0/24, fd77:x::/64).

set -u

MESH_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# The build under test; sanitizer builds are in folders of their own.
MESH_BUILD=${MESH_BUILD:-build}
[[ $MESH_BUILD == /* ]] || MESH_BUILD=$MESH_TOP/$MESH_BUILD
MESH_PREFIX=mesh$$-
# Where tests leave what the ranks printed, if not in the build.
MESH_RESULTS=${MESH_RESULTS:-$MESH_BUILD/functional}
# Of every cable, in bytes.
MESH_MTU=${MESH_MTU:-1500}
# Longest time that all ranks of one run may take, in seconds; with sanitizers, thrice.
[[ $MESH_BUILD != *sanitize* ]] || RANKS_TIMEOUT=${RANKS_TIMEOUT:-900}
RANKS_TIMEOUT=${RANKS_TIMEOUT:-300}
# Variables for every rank: RANKS_ENV=(NCCL_DEBUG=INFO).
RANKS_ENV=()
# Programs that poll do not take a core each (tests/driver/clock.h).
export TEST_NAP_US=200
# The core that each rank is bound to: RANKS_PIN=(0 1). Empty: wherever the kernel puts it.
RANKS_PIN=()

declare -A MESH_NODE_NUMBER=() # node name -> host part of its management address
declare -A MESH_PEER=()        # "node nic" -> "namespace nic" at the other end of the veth pair
declare -A MESH_FAR=()         # "node nic" of a patched cable -> "node nic" of its far end
MESH_NAMESPACES=()             # full names, in order of creation
MESH_LINKS=0
MESH_CABLES=0

# Nothing ever writes to this descriptor: reading it with a limit is a pause.
exec {MESH_NEVER}<> <(:)

fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "SKIP: $*"; exit 77; }
note() { echo "  $*"; }

now_ms() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }

# pause SECONDS: how long a fault lasts, and how long is measured.
pause() { read -rt "$1" -u "$MESH_NEVER" || true; }

# wait_for COND TIMEOUT_S: polls until the shell command COND holds. Status 1 when it never did.
wait_for() {
	local deadline=$((SECONDS + ${2:-10}))

	until eval "$1"; do
		((SECONDS <= deadline)) || return 1
		pause 0.05
	done
}

# --- namespaces ------------------------------------------------------------------------------

# mesh_init: to be called first. Ends the script with 77 where namespaces cannot be made.
mesh_init() {
	local probe=${MESH_PREFIX}probe tool

	for tool in ip tc; do
		command -v $tool >/dev/null || skip "'$tool' is missing (Debian, Ubuntu: iproute2)"
	done
	((EUID == 0)) || skip "needs root to make network namespaces"
	ip netns add "$probe" 2>/dev/null || skip "the kernel does not let us make namespaces"
	if ! ip -n "$probe" link add v0 type veth peer name v1 2>/dev/null; then
		ip netns del "$probe"
		skip "the kernel has no veth devices"
	fi
	# Some containers may make a namespace, but not mount the /sys that belongs to it.
	if ! ip netns exec "$probe" unshare --uts true 2>/dev/null; then
		ip netns del "$probe"
		skip "the kernel does not let us run anything in a namespace"
	fi
	ip netns del "$probe"
	trap mesh_cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	mesh_remove_leftovers
}

# Namespaces of scripts that were killed: no process has their pid.
mesh_leftovers() {
	local name pid

	ip netns list | while read -r name _; do
		[[ $name =~ ^mesh([0-9]+)- ]] || continue
		pid=${BASH_REMATCH[1]}
		[[ -d /proc/$pid ]] || echo "$name"
	done
}

mesh_remove_leftovers() {
	local name

	for name in $(mesh_leftovers); do
		echo "removing $name, left by a test that was killed" >&2
		mesh_namespace_delete "$name"
	done
}

mesh_namespace_add() {
	local ns=$1 key

	ip netns add "$ns" || fail "cannot make namespace $ns"
	MESH_NAMESPACES+=("$ns")
	ip -n "$ns" link set lo up
	# IPv6 addresses are usable at once; no node forwards.
	for key in ipv6/conf/{all,default}/accept_dad ipv6/conf/{all,default}/accept_ra \
		ipv4/ip_forward; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		ip netns exec "$ns" sh -c '[ ! -e "$0" ] || echo 0 >"$0"' "/proc/sys/net/$key"
	done
}

mesh_namespace_pids() { ip netns pids "$1" 2>/dev/null; }

mesh_namespace_delete() {
	local ns=$1 pids

	pids=$(mesh_namespace_pids "$ns")
	if [[ $pids ]]; then
		# shellcheck disable=SC2086 # one word per process
		kill -TERM $pids 2>/dev/null
		if ! wait_for "[[ -z \$(mesh_namespace_pids $ns) ]]" 1; then
			# shellcheck disable=SC2046
			kill -KILL $(mesh_namespace_pids "$ns") 2>/dev/null
			wait_for "[[ -z \$(mesh_namespace_pids $ns) ]]" 5 ||
				echo "processes in $ns do not end" >&2
		fi
	fi
	ip netns del "$ns"
}

# Runs on EXIT; keeps the exit status of the script.
mesh_cleanup() {
	local status=$? ns

	trap - EXIT
	trap '' HUP INT TERM
	for ns in "${MESH_NAMESPACES[@]}"; do
		mesh_namespace_delete "$ns"
	done
	exit $status
}

# --- nodes and links -------------------------------------------------------------------------

mesh_ns() { echo "$MESH_PREFIX$1"; }

# Replaces this process by COMMAND in NODE, a host of its own to the plugin: name and network.
# shellcheck disable=SC2016 # expanded by the inner shell
mesh_exec() {
	exec ip netns exec "$MESH_PREFIX$1" unshare --uts \
		sh -c 'hostname "$0" && NCCL_MESH_NODE_NAME=$0 exec "$@"' "$@"
}

# on NODE COMMAND...: runs it in the node.
on() { (mesh_exec "$@"); }

# mesh_spawn NODE LOG COMMAND...: as `on`, in the background; MESH_SPAWNED is its own pid.
mesh_spawn() {
	local node=$1 log=$2

	shift 2
	: >"$log" # who waits for a line must not see those of the last process
	(mesh_exec "$node" "$@" >"$log" 2>&1 </dev/null) &
	# shellcheck disable=SC2034 # for the caller
	MESH_SPAWNED=$!
}

# mesh_bridge NAMESPACE BRIDGE: forwards at once, without spanning tree or multicast snooping.
mesh_bridge() {
	ip -n "$1" link add "$2" type bridge forward_delay 0 stp_state 0 mcast_snooping 0 &&
		ip -n "$1" link set "$2" up || fail "cannot make bridge $2"
}

# mesh_node NODE...: makes nodes, each with lo and mgmt0 (its default route).
mesh_node() {
	local node number mgmt=${MESH_PREFIX}mgmt

	if ((${#MESH_NODE_NUMBER[@]} == 0)); then
		mesh_namespace_add "$mgmt"
		mesh_bridge "$mgmt" br0
		ip -n "$mgmt" address add 10.77.0.254/24 dev br0
	fi
	for node in "$@"; do
		number=$((${#MESH_NODE_NUMBER[@]} + 1))
		MESH_NODE_NUMBER[$node]=$number
		mesh_namespace_add "$MESH_PREFIX$node"
		mesh_attach mgmt br0 "$node" mgmt0 "10.77.0.$number/24"
		ip -n "$MESH_PREFIX$node" route add default via 10.77.0.254
	done
}

mesh_mgmt_addr() { echo "10.77.0.${MESH_NODE_NUMBER[$1]}"; }

# mesh_addresses NODE NIC ADDR/PLEN[,ADDR/PLEN...]: "" or "-" for none.
mesh_addresses() {
	local addr

	for addr in ${3//,/ }; do
		[[ $addr == - ]] || ip -n "$MESH_PREFIX$1" address add "$addr" dev "$2" ||
			fail "cannot give $addr to $1 $2"
	done
}

# mesh_await_link NAMESPACE NIC: the kernel says late that a link is operational, and libfabric
# leaves out one that is not. ip reads all namespaces and complains of one that disappears.
mesh_await_link() {
	wait_for "ip -n $1 link show dev $2 2>/dev/null | grep -q 'state UP'" 60 ||
		fail "$1 $2 stays down"
}

# A veth pair between two NICs that have no addresses yet. ip takes a name without "name" for one of
# its words if it begins that word: txq for txqueuelen.
mesh_pair() {
	local ns1=$MESH_PREFIX$1 nic1=$2 ns2=$MESH_PREFIX$3 nic2=$4

	ip -n "$ns1" link add name "$nic1" mtu "$MESH_MTU" type veth \
		peer name "$nic2" mtu "$MESH_MTU" netns "$ns2" &&
		ip -n "$ns1" link set dev "$nic1" up && ip -n "$ns2" link set dev "$nic2" up ||
		fail "cannot make the link $1 $nic1 - $3 $nic2"
	mesh_await_link "$ns1" "$nic1"
	mesh_await_link "$ns2" "$nic2"
	MESH_PEER["$1 $nic1"]="$3 $nic2"
	MESH_PEER["$3 $nic2"]="$1 $nic1"
}

# mesh_attach SWITCH BRIDGE NODE NIC ADDRS: plugs a NIC into a bridge.
mesh_attach() {
	local port=p$((++MESH_LINKS))

	mesh_pair "$3" "$4" "$1" "$port"
	ip -n "$MESH_PREFIX$1" link set "$port" master "$2" || fail "cannot attach $3 $4 to $1"
	mesh_addresses "$3" "$4" "$5"
}

# mesh_link NODE NIC ADDRS NODE NIC ADDRS: one cable, a veth pair.
mesh_link() {
	mesh_pair "$1" "$2" "$4" "$5"
	mesh_addresses "$1" "$2" "$3"
	mesh_addresses "$4" "$5" "$6"
}

# mesh_cabled XY...: a cable with a subnet of its own, 10.78.N.0/24, between the nodes x and y.
mesh_cabled() {
	local pair x y

	for pair; do
		x=${pair:0:1} y=${pair:1:1}
		mesh_link "$x" "$pair" "10.78.$((++MESH_CABLES)).1/24" \
			"$y" "$y$x" "10.78.$MESH_CABLES.2/24"
	done
}

# mesh_forward NODE...: its kernel forwards, by its routes only.
mesh_forward() {
	local ns

	for ns in "$@"; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		ip netns exec "$MESH_PREFIX$ns" sh -c '
			echo 1 >/proc/sys/net/ipv4/ip_forward
			for f in /proc/sys/net/ipv4/conf/*/send_redirects; do echo 0 >"$f"; done'
	done
}

# mesh_route NODE SUBNET GATEWAY NIC
mesh_route() {
	ip -n "$MESH_PREFIX$1" route add "$2" via "$3" dev "$4" || fail "no route $*"
}

# mesh_cable NODE NIC ADDRS NODE NIC ADDRS: a cable that can be pulled: mesh_unplug takes the
# carrier on both ends and leaves both NICs administratively up, as a real cable does.
mesh_cable() {
	local bridge

	[[ " ${MESH_NAMESPACES[*]} " == *" ${MESH_PREFIX}patch "* ]] ||
		mesh_namespace_add "${MESH_PREFIX}patch"
	bridge=br$((++MESH_LINKS))
	mesh_bridge "${MESH_PREFIX}patch" "$bridge"
	mesh_attach patch "$bridge" "$1" "$2" "$3"
	mesh_attach patch "$bridge" "$4" "$5" "$6"
	MESH_FAR["$1 $2"]="$4 $5"
	MESH_FAR["$4 $5"]="$1 $2"
}

# mesh_switch NAME NODE NIC ADDRS [NODE NIC ADDRS]...: a switch in a namespace of its own.
mesh_switch() {
	local name=$1

	shift
	if [[ " ${MESH_NAMESPACES[*]} " != *" $MESH_PREFIX$name "* ]]; then
		mesh_namespace_add "$MESH_PREFIX$name"
		mesh_bridge "$MESH_PREFIX$name" br0
	fi
	while (($# >= 3)); do
		mesh_attach "$name" br0 "$1" "$2" "$3"
		shift 3
	done
}

# mesh_up SHAPE [patched]: triangle, or line N or ring N of nodes a, b, c ...; node x's NIC
# towards y is called xy. With 'patched' the cables can be pulled.
mesh_up() {
	local shape=$1 count=3 kind=mesh_link names i j x y

	names=({a..z})
	if [[ $shape == line || $shape == ring ]]; then
		count=$2
		shift
	elif [[ $shape != triangle ]]; then
		fail "no mesh shape '$shape' (triangle, line N, ring N)"
	fi
	[[ ${2:-} != patched ]] || kind=mesh_cable
	mesh_node "${names[@]:0:count}"
	for ((i = 0; i < count; i++)); do
		j=$(((i + 1) % count))
		[[ $shape == line ]] && ((j == 0)) && break
		x=${names[i]} y=${names[j]}
		$kind "$x" "$x$y" "10.77.$((i + 1)).1/24,fd77:$((i + 1))::1/64" \
			"$y" "$y$x" "10.77.$((i + 1)).2/24,fd77:$((i + 1))::2/64"
	done
}

# mesh_addr NODE NIC [4|6]: its first address, without the prefix length.
mesh_addr() {
	ip -n "$MESH_PREFIX$1" -"${3:-4}" -o address show dev "$2" scope global |
		awk '{sub("/.*", "", $4); print $4; exit}'
}

# mesh_link_local NODE NIC: its link-local address, once it has one.
mesh_link_local() {
	ip -n "$MESH_PREFIX$1" -6 -o address show dev "$2" scope link |
		awk '{sub("/.*", "", $4); print $4; exit}'
}

# uncable NODE NIC: takes away both ends of a veth pair.
uncable() { ip -n "$MESH_PREFIX$1" link del dev "$2" || fail "cannot remove $1 $2"; }

# --- state and counters ----------------------------------------------------------------------

# mesh_shape NODE NIC RATE: limits what this NIC sends ("1gbit"); "none" lifts the limit.
mesh_shape() {
	if [[ $3 == none ]]; then
		ip netns exec "$MESH_PREFIX$1" tc qdisc del dev "$2" root
	else
		ip netns exec "$MESH_PREFIX$1" \
			tc qdisc replace dev "$2" root tbf rate "$3" burst 256kb latency 30ms
	fi || fail "cannot shape $1 $2 to $3"
}

# mesh_carrier NODE NIC down|up: the far end of the veth pair goes down, so NIC loses carrier.
mesh_carrier() {
	local peer

	read -ra peer <<<"${MESH_PEER["$1 $2"]}"
	ip -n "$MESH_PREFIX${peer[0]}" link set dev "${peer[1]}" "$3" || fail "carrier $1 $2 $3"
	wait_for "[[ \$(mesh_has_carrier $1 $2) == $([[ $3 == up ]] && echo 1 || echo 0) ]]" 60 ||
		fail "$1 $2 did not go $3"
}

mesh_has_carrier() { on "$1" cat "/sys/class/net/$2/carrier"; }

# mesh_unplug and mesh_plug NODE NIC: both ends of a mesh_cable lose or get their carrier.
mesh_unplug() { mesh_plug "$1" "$2" down; }

mesh_plug() {
	local far

	[[ ${MESH_FAR["$1 $2"]:-} ]] || fail "$1 $2 is not on a cable made with mesh_cable"
	read -ra far <<<"${MESH_FAR["$1 $2"]}"
	mesh_carrier "$1" "$2" "${3:-up}"
	mesh_carrier "${far[0]}" "${far[1]}" "${3:-up}"
}

# mesh_bytes NODE NIC tx|rx: the interface's byte counter.
mesh_bytes() { on "$1" cat "/sys/class/net/$2/statistics/$3_bytes"; }

# core_share: percent of a core, of the busiest one, that a process gets if it yields whenever it
# has nothing to do, as fabric_pingpong does: beside a job at nice 19 a process that only spins gets
# 98 %, and one that yields gets 2 %. If the share is small, a figure below its bound proves
# nothing.
core_share() {
	python3 - <<-'END'
		import os, time
		def share(core):
		    os.sched_setaffinity(0, {core})
		    wall, cpu = time.monotonic(), time.process_time()
		    while time.monotonic() - wall < 0.1:
		        os.sched_yield()
		    return (time.process_time() - cpu) / (time.monotonic() - wall)
		print(int(100 * min(share(core) for core in os.sched_getaffinity(0))))
	END
}

# try_while_busy PERCENT COMMAND: COMMAND up to three times, until it succeeds. Status 1 if it never
# does; but if no attempt had PERCENT of each core to itself, before and after it, that proves
# nothing, and the test is skipped.
try_while_busy() {
	local attempt share quiet=0

	for attempt in 1 2 3; do
		share=$(core_share)
		! "$2" || return 0
		((share < $1 || $(core_share) < $1)) || quiet=1
	done
	((quiet)) ||
		skip "this machine is busy: no attempt of $attempt had $1 % of each core to itself"
	return 1
}

# --- ranks -----------------------------------------------------------------------------------

# run_ranks FOLDER NODE... [-- ARGUMENT...]: fabric_pingpong as one rank in each node named (a
# node may be named several times), which meet over the management network. What they print is
# in FOLDER/rank<N>.out, RANKS_STATUS has their exit statuses. Status 0 if all of them are 0.
run_ranks() {
	local folder=$1 nodes=() pids=() pin=() rank status=0

	shift
	while (($#)) && [[ $1 != -- ]]; do
		nodes+=("$1")
		shift
	done
	shift || true
	[[ -x $MESH_BUILD/fabric_pingpong ]] || fail "$MESH_BUILD/fabric_pingpong is not built"
	mkdir -p "$folder"
	RANKS_STATUS=()
	for rank in "${!nodes[@]}"; do
		pin=()
		[[ -z ${RANKS_PIN[rank]:-} ]] || pin=(taskset -c "${RANKS_PIN[rank]}")
		mesh_spawn "${nodes[rank]}" "$folder/rank$rank.out" \
			env RANK="$rank" WORLD_SIZE="${#nodes[@]}" \
			MASTER_ADDR="$(mesh_mgmt_addr "${nodes[0]}")" MASTER_PORT=29500 \
			"${RANKS_ENV[@]}" \
			timeout -k 5 "$RANKS_TIMEOUT" "${pin[@]}" \
			"$MESH_BUILD/fabric_pingpong" "$@"
		pids+=("$MESH_SPAWNED")
	done
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}"
		RANKS_STATUS[rank]=$?
		((RANKS_STATUS[rank] == 0)) || status=1
	done
	return $status
}

# pingpong_short FOLDER ARGUMENT...: makes a folder with fabric_pingpong, which then has these
# arguments besides those that it is started with, fi_mesh and the plugin: for commands that start
# it as users do, where what it would measure in minutes is not what the test is there for.
pingpong_short() {
	local folder=$1

	mkdir -p "$folder" && ln -s "$MESH_BUILD"/{fi_mesh,libnccl-net-mesh.so} "$folder" ||
		fail "cannot fill $folder"
	printf '#!/bin/sh\nexec %q "$@" %s\n' "$MESH_BUILD/fabric_pingpong" "${*:2}" \
		>"$folder/fabric_pingpong"
	chmod 755 "$folder/fabric_pingpong"
}

# ranks_show FOLDER: what the ranks printed, for a test that fails.
ranks_show() {
	local rank

	for rank in "${!RANKS_STATUS[@]}"; do
		echo "--- rank $rank, exit status ${RANKS_STATUS[rank]}"
		tail -n 40 "$1/rank$rank.out"
	done
}
