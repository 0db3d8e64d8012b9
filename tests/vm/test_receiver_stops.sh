#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_receiver_stops.sh - a receiver that does not poll its NIC for seconds: the sender waits
# for credits, and never makes the NIC ask "receiver not ready".
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

STOPS=3
STOP_S=2

mesh_init
pair_up

# Stops a rank again and again; both ranks receive half of the time. Leaves a line for each stop.
stops() {
	local turn pid

	for ((turn = 0; turn < STOPS; turn++)); do
		wait_for "pgrep fabric_pingpong >/dev/null" 60 || return
		busybox sleep 1 # at an arbitrary point of the transfer
		pid=$(pgrep -n fabric_pingpong) && kill -STOP "$pid" || return
		busybox sleep $STOP_S # how long the rank is stopped
		kill -CONT "$pid" || return
		echo "$pid" >>"$OUT/stops"
	done
}

stops &
stopper=$!
ranks_pass stopped a b -- --timeout 100 --check-max 16K --sizes 8,4K,64K,1M --iters 60 --repeat 1 \
	--verbose
wait "$stopper"
(($(wc -l <"$OUT/stops") == STOPS)) || fail "the ranks were done before they were stopped"
for nic in ab ba; do
	for counter in rcvd_rnr_err send_rnr_err retry_exceeded_err retry_rnr_exceeded_err; do
		value=$(rdma_counter "$nic" $counter)
		((value == 0)) || fail "rxe_$nic: $counter is $value"
	done
done
note "no receiver was ever not ready"
