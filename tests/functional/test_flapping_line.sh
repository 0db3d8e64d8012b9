#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_flapping_line.sh - a line of four nodes, a - p - q - b. While messages of all sizes stream
# between its ends, the cable between the relays flaps: it is out for 0.15 to 0.65 s, then in for
# 0.2 to 0.8 s. The connections move on while it is in, as those of a direct pair do.
# seconds: 40
# long: it fails, as is known (tests/expected_failures)
. "$(dirname "${BASH_SOURCE[0]}")/relays.sh"

# A third of the usual time, so that a failure does not take long.
RECOVERY_S=10
FLAPS_S=30

# port_set NODE NIC up|down: one end of a patched cable.
port_set() {
	local port

	read -ra port <<<"${MESH_PEER["$1 $2"]}"
	ip -n "$MESH_PREFIX${port[0]}" link set dev "${port[1]}" "$3" || fail "carrier $1 $2 $3"
}

# flap: until the file "calm" is there; the cable is in then.
flap() {
	RANDOM=2
	while [[ ! -e $FAULTS/calm ]]; do
		port_set p pq down
		port_set q qp down
		pause "0.$((150 + RANDOM % 500))"
		port_set p pq up
		port_set q qp up
		pause "0.$((200 + RANDOM % 600))"
	done
}

faults_init
mesh_node a b p q
mesh_link a ap 10.77.1.1/24 p pa 10.77.1.2/24
mesh_cable p pq 10.77.2.1/24 q qp 10.77.2.2/24
mesh_link q qb 10.77.3.1/24 b bq 10.77.3.2/24
ENVIRONMENT+=("NCCL_MESH_RECOVERY_TIMEOUT=$RECOVERY_S")
begin flapping p q
flap &
flapper=$!
for ((end = SECONDS + FLAPS_S; SECONDS < end; )); do
	pause 0.2
	for rank in 0 1; do
		kill -0 "${STREAM_PIDS[rank]}" 2>/dev/null || {
			touch "$FAULTS/calm"
			stream_fail "rank $rank has failed"
		}
	done
done
touch "$FAULTS/calm"
wait $flapper
moves 20000
note "after $FLAPS_S s of flapping something arrives after $MOVED_MS ms"
stream_stop
stream_ends
relay_ends p
relay_ends q
