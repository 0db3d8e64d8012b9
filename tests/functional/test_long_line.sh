#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_long_line.sh - two sites joined by one slow, long line. One TCP connection carries its buffer
# in each round trip, a fourth of what the line could carry; a comm fills the line with several.
#
# Both limits hold on any machine: the line's rate from above, buffer and delay for the connection.
# alone: measures
# seconds: 30
# long: it measures
export MESH_MTU=9000
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RATE=180   # Mbit/s of the line
DELAY=20   # ms of one way
BUFFER=256 # KiB of a TCP connection, at most
QUIET=50   # percent of a core

# a and b have no common subnet; the line is on-link at both ends, and delays.
make_line() {
	local node

	mesh_node a b
	mesh_namespace_add "$(mesh_ns line)"
	mesh_link a wan 10.77.1.1/32 line a -
	mesh_link b wan 10.77.2.1/32 line b -
	ip -n "$(mesh_ns a)" route add 10.77.2.0/24 dev wan src 10.77.1.1
	ip -n "$(mesh_ns b)" route add 10.77.1.0/24 dev wan src 10.77.2.1
	for node in a b; do
		mesh_shape $node wan ${RATE}mbit
		# shellcheck disable=SC2016 # expanded by the inner shell
		on $node sh -c 'echo "4096 16384 $0" >/proc/sys/net/ipv4/tcp_wmem
			echo "4096 131072 $0" >/proc/sys/net/ipv4/tcp_rmem
			echo reno >/proc/sys/net/ipv4/tcp_congestion_control' $((BUFFER << 10))
	done
	mesh_spawn line "$OUT/line.log" "$MESH_BUILD/functional/long_line" a b $DELAY
	wait_for "grep -q ready '$OUT/line.log'" 60 || { cat "$OUT/line.log"; fail "no line"; }
}

# stream RUN [VARIABLE=VALUE...]: Mbit/s over the line. What both ends say is in OUT/RUN.<node>.
stream() {
	local run=$1 pids=() node

	rm -f "$OUT/meet"
	for node in a b; do
		mesh_spawn $node "$OUT/$run.$node" env "NCCL_DEBUG=INFO" "${@:2}" \
			timeout 60 "$MESH_BUILD/bench/plugin_bench" --workload stream --ranks 2 \
			--rank "${#pids[@]}" --meet "$OUT/meet" --sizes 512K --inflight 8 \
			--seconds 2 --plugin "$MESH_BUILD/libnccl-net-mesh.so"
		pids+=("$MESH_SPAWNED")
	done
	wait "${pids[0]}" && wait "${pids[1]}" ||
		{ cat "$OUT/$run".* >&2; fail "run $run"; }
	sed -n 's/.*"gbit_s": \([0-9.]*\).*/\1/p' "$OUT/$run.a" | awk '{ print int(1000 * $1) }'
}

# is_full: one connection, then all that the plugin makes.
is_full() {
	one=$(stream one NCCL_MESH_MAX_PATHS=1) && all=$(stream all) || exit 1
	note "of $RATE Mbit/s one connection carries $one, all of them $all"
	((one > 10)) || fail "one connection carries too little"
	((10 * all >= 9 * RATE && all >= 4 * one))
}

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not the line" ;;
esac
mesh_init
make_line
try_while_busy $QUIET is_full ||
	fail "a comm does not fill the line with at least four times what one connection carries"
