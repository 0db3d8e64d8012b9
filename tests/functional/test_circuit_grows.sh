#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_circuit_grows.sh - a circuit that began with the least memory, 32 KiB, fills a line whose
# round trip is long enough for eight times as much: at least nine tenths of what a comm without a
# relay gets there.
#
# The line's rate and its delay bound both on any machine.
# alone: measures
# seconds: 20
# long: it measures; tests/world
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RATE=100 # Mbit/s of the line
DELAY=10 # ms of one way: 256 KiB are in flight then
QUIET=50 # percent of a core

# a and b are joined by the line, which is on-link at both ends; b and c by a cable.
make_nodes() {
	mesh_node a b c
	mesh_namespace_add "$(mesh_ns line)"
	mesh_link a wan 10.77.1.1/24 line a -
	mesh_link b wan 10.77.1.2/24 line b -
	mesh_link b bc 10.77.2.1/24 c cb 10.77.2.2/24
	mesh_shape a wan ${RATE}mbit
	mesh_spawn line "$OUT/line.log" "$MESH_BUILD/functional/long_line" a b $DELAY
	wait_for "grep -q ready '$OUT/line.log'" 60 || { cat "$OUT/line.log"; fail "no line"; }
}

# stream RUN NODE: Mbit/s from a to NODE. What both ends say is in OUT/RUN.<node>.
stream() {
	local run=$1 pids=() node

	rm -f "$OUT/meet"
	for node in a "$2"; do
		mesh_spawn "$node" "$OUT/$run.$node" env "NCCL_DEBUG=INFO" \
			timeout 300 "$MESH_BUILD/bench/plugin_bench" --workload stream --ranks 2 \
			--rank "${#pids[@]}" --meet "$OUT/meet" --sizes 512K,512K --inflight 8 \
			--seconds 2 --pause 20 --plugin "$MESH_BUILD/libnccl-net-mesh.so"
		pids+=("$MESH_SPAWNED")
	done
	wait "${pids[0]}" && wait "${pids[1]}" ||
		{ cat "$OUT/$run".* >&2; fail "run $run"; }
	sed -n 's/.*"gbit_s": \([0-9.]*\).*/\1/p' "$OUT/$run.a" | awk '{ print int(1000 * $1) }' |
		tail -n 1
}

is_full() {
	cable=$(stream cable b) && relayed=$(stream relayed c) || exit 1
	note "of $RATE Mbit/s a comm carries $cable without the relay, $relayed over it"
	((10 * relayed >= 9 * cable))
}

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not the line" ;;
esac
mesh_init
make_nodes
# The key of the job: nobody connects there.
export MASTER_ADDR=192.0.2.1 MASTER_PORT=29500
# A circuit begins with 32 KiB then.
mesh_spawn b "$OUT/serve" env NCCL_MESH_RELAY_MEMORY=1M NCCL_DEBUG=INFO \
	"$MESH_BUILD/fi_mesh" serve --relay
wait_for "grep -qs '^relaying for' $OUT/serve" 60 || fail "b does not relay: $(cat "$OUT/serve")"
try_while_busy $QUIET is_full ||
	fail "a circuit does not grow with what its line needs"
