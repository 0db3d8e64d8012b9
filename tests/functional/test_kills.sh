#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_kills.sh - one of two processes is killed at a random moment, also while a cable is away or
# its paths are being repaired: the other process gets an error, with the reason in its log.
#
# KILLS=100 makes it a long run, KILLS_SEED repeats one.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

KILLS=${KILLS:-8}
KILLS_SEED=${KILLS_SEED:-$RANDOM}
# Milliseconds from the end of the process to the end of the other one, which notices it at once.
BOUND=3000

cables_init 2 200mbit
RANDOM=$KILLS_SEED
note "$KILLS kills, seed $KILLS_SEED"

# What happens to cable x2 before the kill; sets SAID.
fault() {
	case $((RANDOM % 4)) in
	0) SAID="nothing" ;;
	1)
		SAID="x2 has just lost its carrier"
		mesh_carrier a x2 down
		;;
	2)
		SAID="x2 has its carrier again"
		mesh_carrier b x2 down
		pause "0.$((RANDOM % 900 + 100))"
		mesh_carrier b x2 up
		;;
	*)
		SAID="all connections of x2 are reset"
		on a ss -K -t src 10.77.2.1 >/dev/null 2>&1
		;;
	esac
}

for ((kill = 1; kill <= KILLS; kill++)); do
	# The survivor must not wait for another path: its peer has ended.
	stream "kill$kill" 0 NCCL_MESH_RECOVERY_TIMEOUT=60
	pause "0.$((RANDOM % 900 + 100))"
	rank=$((RANDOM % 2))
	fault
	pause "0.0$((RANDOM % 90 + 10))"
	kill -KILL "${STREAM_PIDS[rank]}"
	wait "${STREAM_PIDS[rank]}" 2>/dev/null
	note "$kill of $KILLS: rank $rank is killed; before: $SAID"
	# A process that had unread bytes leaves with a reset, and is found dead a moment later.
	stream_breaks $((1 - rank)) 'node .*: its process.* ended' $BOUND
	mesh_carrier a x2 up
done
