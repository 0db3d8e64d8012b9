#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_long_line.sh - a slow, long line. One TCP connection carries its buffer in each round trip, a
# fourth of what the line could carry; a comm fills the line with several. And a circuit fills it
# with the memory that a relay has by default: at least nine tenths of what a comm without a relay
# gets there.
#
# All limits hold on any machine: the line's rate from above, buffer and delay for the connection.
# alone: measures
# seconds: 50
# long: it measures; tests/world
export MESH_MTU=9000
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

BUFFER=256 # KiB of a TCP connection, at most
QUIET=50   # percent of a core

# make_line X ADDRESS Y ADDRESS RATE DELAY: between two nodes, on-link at both ends, of RATE Mbit/s,
# with DELAY ms one way.
make_line() {
	RATE=$5
	mesh_node "$1" "$3"
	mesh_namespace_add "$(mesh_ns "line$1")"
	mesh_link "$1" wan "$2" "line$1" "$1" -
	mesh_link "$3" wan "$4" "line$1" "$3" -
	mesh_shape "$1" wan "${RATE}mbit"
	mesh_shape "$3" wan "${RATE}mbit"
	mesh_spawn "line$1" "$OUT/line$1.log" "$MESH_BUILD/functional/long_line" "$1" "$3" "$6"
	wait_for "grep -q ready '$OUT/line$1.log'" 60 ||
		{ cat "$OUT/line$1.log"; fail "no line"; }
}

# stream RUN X Y SIZES [VARIABLE=VALUE...]: Mbit/s from X to Y, of the last size. What both ends say
# is in OUT/RUN.<node>.
stream() {
	local run=$1 pids=() node

	rm -f "$OUT/meet"
	for node in "$2" "$3"; do
		mesh_spawn "$node" "$OUT/$run.$node" env "NCCL_DEBUG=INFO" "${@:5}" \
			timeout 300 "$MESH_BUILD/bench/plugin_bench" --workload stream --ranks 2 \
			--rank "${#pids[@]}" --meet "$OUT/meet" --sizes "$4" --inflight 8 \
			--seconds 2 --pause 20 --plugin "$MESH_BUILD/libnccl-net-mesh.so"
		pids+=("$MESH_SPAWNED")
	done
	wait "${pids[0]}" && wait "${pids[1]}" ||
		{ cat "$OUT/$run".* >&2; fail "run $run"; }
	sed -n 's/.*"gbit_s": \([0-9.]*\).*/\1/p' "$OUT/$run.$2" | awk '{ print int(1000 * $1) }' |
		tail -n 1
}

# a and b have no common subnet.
many_connections() {
	local node

	make_line a 10.77.1.1/32 b 10.77.2.1/32 180 20
	ip -n "$(mesh_ns a)" route add 10.77.2.0/24 dev wan src 10.77.1.1
	ip -n "$(mesh_ns b)" route add 10.77.1.0/24 dev wan src 10.77.2.1
	for node in a b; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		on $node sh -c 'echo "4096 16384 $0" >/proc/sys/net/ipv4/tcp_wmem
			echo "4096 131072 $0" >/proc/sys/net/ipv4/tcp_rmem
			echo reno >/proc/sys/net/ipv4/tcp_congestion_control' $((BUFFER << 10))
	done
}

# One connection, then all that the plugin makes.
connections_fill() {
	local one all

	one=$(stream one a b 512K NCCL_MESH_DEBUG_MAX_PATHS=1) || exit 1
	all=$(stream all a b 512K) || exit 1
	note "of $RATE Mbit/s one connection carries $one, all of them $all"
	((one > 10)) || fail "one connection carries too little"
	((10 * all >= 9 * RATE && all >= 4 * one))
}

# d and e are joined by the line, in whose round trip 256 KiB are in flight; e and f by a cable.
relayed_line() {
	make_line d 10.77.3.1/24 e 10.77.3.2/24 100 10
	mesh_node f
	mesh_link e ef 10.77.4.1/24 f fe 10.77.4.2/24
	# The key of the job: nobody connects there.
	export MASTER_ADDR=192.0.2.1 MASTER_PORT=29500
	serve e -- NCCL_DEBUG=INFO --relay
}

circuit_fills() {
	local cable relayed

	cable=$(stream cable d e 512K,512K) && relayed=$(stream relayed d f 512K,512K) || exit 1
	note "of $RATE Mbit/s a comm carries $cable without the relay, $relayed over it"
	((10 * relayed >= 9 * cable))
}

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not the line" ;;
esac
mesh_init
many_connections
try_while_busy $QUIET connections_fill ||
	fail "a comm does not fill the line with at least four times what one connection carries"
relayed_line
try_while_busy $QUIET circuit_fills ||
	fail "a circuit has less memory than its line needs"
