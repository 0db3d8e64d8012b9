#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_slow_cable.sh - one of two cables drops to 64 kbit/s while messages of all sizes stream: the
# connections go on over the other one. What was queued on the slow one is not waited for.
# seconds: 25
# long: it fails, as is known (tests/expected_failures)
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

SLOW_S=12
# What is queued there when it becomes slow needs more than SLOW_S.
GAP_MS=4000
STREAM_MOST=16000000

# slow NODE: the kernel queues what TCP gives it, as a NIC does.
slow() {
	on "$1" tc qdisc replace dev x2 root tbf rate 64kbit burst 16kb latency 50ms ||
		fail "cannot slow x2 of $1"
}

cables_init 2 4000mbit
stream slow 0
moves 5000
slow a
slow b
for ((end = SECONDS + SLOW_S; SECONDS < end; )); do
	moves $GAP_MS
	pause 0.2
done
note "one of two cables carries 64 kbit/s for $SLOW_S s: no gap of $GAP_MS ms"
for node in a b; do mesh_shape $node x2 4000mbit; done
moves $GAP_MS
stream_stop
stream_ends
