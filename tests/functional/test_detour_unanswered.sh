#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_detour_unanswered.sh - the kernels' routes between two nodes are dead, and the process on the
# node between, which relays instead, is stopped and does not answer. When that kernel begins to
# forward, the connection takes the routes, although the relay never answers.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# A connection that takes the routes only at its deadline fails.
FAULTS_ENV+=(
	"MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_CONNECT_TIMEOUT=200"
	"NCCL_MESH_ACCEPT_TIMEOUT=200" "NCCL_MESH_RECOVERY_TIMEOUT=200"
)
IN_TIME=100000

faults_init
mesh_up line 3
mesh_route a 10.77.2.0/24 10.77.1.2 ab
mesh_route c 10.77.1.0/24 10.77.2.1 cb
play b relay <<-END
	await $FAULTS/first.up
	stop
	await $FAULTS/over
END
play c receiver <<-END
	$(meet listen 64K)
	transfer 0 60000 8 3
	accepts 1 $FAULTS/second 64K
	transfer 1 60000 8 4
	touch $FAULTS/second.done
	await $FAULTS/over
	close 0
	close 1
END
# The first comm has the link to the relay up before that is stopped.
play a sender <<-END
	$(meet connect 64K)
	transfer 0 60000 8 3
	touch $FAULTS/first.up
	await $FAULTS/stopped
	await $FAULTS/second
	within $IN_TIME connect 1 $FAULTS/second
	room 1 64K
	transfer 1 60000 8 4
	await $FAULTS/over
	close 0
	close 1
END
stands relay
: >"$FAULTS/stopped"
detoured='let nothing through for .* going over relays'
wait_for "(( \$(grep -c '$detoured' $FAULTS/sender.log) == 2 ))" $((60 * FAULTS_SLOW)) ||
	faults_show "the second connection does not go over the relay"
mesh_forward b
wait_for "[[ -e $FAULTS/second.done ]]" $((100 * FAULTS_SLOW)) ||
	faults_show "the second connection does not take the routes"
grep -q '^State:.T' "/proc/${FAULTS_PID[relay]}/status" || fail "the relay runs"
said sender INFO "routes to node c .*work now, and no relay has answered"
signal relay CONT
: >"$FAULTS/over"
ended sender
ended receiver
ended relay
note "the second connection goes over the routes while the relay is stopped"
