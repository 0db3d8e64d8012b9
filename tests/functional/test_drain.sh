#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_drain.sh - `fi_mesh drain` takes one of two cables out of use while messages of all sizes
# stream in both directions; then the cable is pulled, comes back, and is used again. No WARN says
# that a path was lost, and every byte is right.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

MESH=$MESH_BUILD/fi_mesh
# Four comms in each direction, with a path over each cable.
PATHS=8

faults_init
OUT=$FAULTS
STATS=$OUT/stats
mesh_node a b
# One folder for both nodes, whose NICs have other names: so one end alone is drained.
for i in 1 2; do
	mesh_link a xa$i 10.77.$i.1/24 b xb$i 10.77.$i.2/24
	mesh_shape a xa$i 200mbit
	mesh_shape b xb$i 200mbit
done

# watched NODE FIELD NIC: the sum of a number of all paths of the NIC.
watched() {
	on "$1" "$MESH" watch --stats-dir "$STATS" --json --count 1 --interval 0.1 |
		python3 -c 'import json, sys
links = [l for l in json.load(sys.stdin)["links"] if l["nic"] == sys.argv[2]]
print(sum(l[sys.argv[1]] for l in links))' "$2" "$3"
}

# awaits SECONDS NODE FIELD NIC NUMBER
awaits() {
	wait_for "[[ \$(watched $2 $3 $4 2>/dev/null) == $5 ]]" $(($1 * FAULTS_SLOW)) ||
		stream_fail "$3 of $4 is $(watched "$2" "$3" "$4"), not $5"
}

drain() { on a "$MESH" drain --stats-dir "$STATS" --timeout $((30 * FAULTS_SLOW)) "$@"; }
undrain() { on a "$MESH" undrain --stats-dir "$STATS" "$@" || stream_fail "undrain $*"; }

# sends NODE NIC MIB: waits until the NIC has sent so much more.
sends() {
	local before

	before=$(mesh_bytes "$1" "$2" tx)
	wait_for "(( \$(mesh_bytes $1 $2 tx) - $before > $3 << 20 ))" $((60 * FAULTS_SLOW)) ||
		stream_fail "$2 carries nothing"
}

# While the other cable carries 20 MiB each way, nothing but control traffic goes over this one.
rests() {
	local before more

	before=$(($(mesh_bytes a xa2 tx) + $(mesh_bytes b xb2 tx)))
	sends a xa1 20
	sends b xb1 20
	more=$(($(mesh_bytes a xa2 tx) + $(mesh_bytes b xb2 tx) - before))
	((more < 1 << 20)) || stream_fail "$1: $more bytes went over the drained cable"
	note "$1: $more bytes over the cable, while the other one carried 20 MiB each way"
}

stream drain 0 "NCCL_MESH_STATS_DIR=$STATS"
awaits 60 a open_paths xa2 $PATHS
sends a xa2 2

drain xa2 >"$OUT/said" 2>&1 || stream_fail "drain: $(cat "$OUT/said")"
grep -q "^xa2 is drained: $PATHS connections of 1 process use other paths" "$OUT/said" ||
	stream_fail "drain says: $(cat "$OUT/said")"
awaits 10 a drained_paths xa2 $PATHS
[[ $(warned "xa2 is being drained" | paste -sd" ") == "1 0" ]] ||
	stream_fail "not one WARN of one rank"
rests "drained"

# The only cable that is left cannot be drained: what uses it is named.
! drain --timeout 1 xa1 >"$OUT/said" 2>&1 || stream_fail "the last cable is drained"
grep -q "all_sizes (pid .*: $PATHS connections with node b: no other path" "$OUT/said" ||
	stream_fail "drain says: $(cat "$OUT/said")"
undrain xa1
awaits 10 a drained_paths xa1 0
drain xa2 >"$OUT/said" 2>&1 || stream_fail "drain again: $(cat "$OUT/said")"

# The cable is pulled.
mesh_carrier a xa2 down
awaits 30 a down_paths xa2 $PATHS
awaits 30 b down_paths xb2 $PATHS
moves 1000
! grep -h 'WARN .*lost node' "$STREAM_FOLDER"/rank*.out || stream_fail "the cable was missed"

# It comes back, and stays out of use until it is undrained.
mesh_carrier a xa2 up
awaits 60 a drained_paths xa2 $PATHS
awaits 10 b drained_paths xb2 $PATHS
rests "back"
undrain xa2
sends a xa2 2
sends b xb2 2
awaits 10 a drained_paths xa2 0
stream_stop
stream_ends
