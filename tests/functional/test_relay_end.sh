#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_end.sh - a relay is silent about the normal end of a process behind it: the receiver
# has closed its end of the comm, and ends before the sender, which is late, has shut the circuit.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

faults_init
FAULTS_ENV+=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500")
mesh_up line 3
play b relay <<-END
	accepts 1 $FAULTS/handle.beside
	await $FAULTS/over
	close 1
END
play c receiver <<-END
	$(meet listen 64K)
	transfer 0 60000 8 3
	await $FAULTS/closed
	close 0
END
# While it has another comm, the close does not wait for the receiver's.
play a sender <<-END
	connects 1 $FAULTS/handle.beside
	$(meet connect 64K)
	transfer 0 60000 8 3
	close 0
	touch $FAULTS/closed
	stop
	touch $FAULTS/over
	close 1
END
stands sender
ended receiver
wait_for "grep -q ' node c .*its process ended' $FAULTS/relay.log" 60 ||
	faults_show "the relay does not notice the receiver's end"
signal sender CONT
ended sender
ended relay
grep -q 'relay: the circuit from node a to node c has ended' "$FAULTS/relay.log" ||
	faults_show "nothing was relayed"
unsaid relay WARN .
unsaid sender WARN .
note "no line of WARN: $(grep -h 'its process ended' "$FAULTS/relay.log" | head -1)"
