#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_striping_drop.sh - one of two cables drops to a tenth of its rate in mid-run: a second
# later both together carry what they can, and when it is back it is used again.
# alone: measures
# seconds: 30
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/lib.sh"

OUT=$MESH_BUILD/striping_drop
RATE=${RATE:-500} # Mbit/s

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not the cables" ;;
esac
mesh_init
mesh_node a b
for i in 1 2; do
	mesh_link a x$i 10.77.$i.1/24 b x$i 10.77.$i.2/24
	mesh_shape a x$i "${RATE}mbit"
	mesh_shape b x$i "${RATE}mbit"
done

# carried SECONDS: Mbit/s that both of a's cables carry from now on, in bytes of the wire.
carried() {
	on a python3 - "$1" <<-'END'
		import sys, time
		def sent():
		    return sum(int(open("/sys/class/net/x%d/statistics/tx_bytes" % i).read())
		               for i in (1, 2))
		start, before = time.monotonic(), sent()
		while time.monotonic() - start < float(sys.argv[1]):
		    time.sleep(0.01)  # between two looks at the clock
		print("%d" % ((sent() - before) * 8 / (time.monotonic() - start) / 1e6))
	END
}

# at_least WHEN MBIT BOUND
at_least() {
	note "$1: $2 Mbit/s (at least $3)"
	(($2 >= $3)) || fail "$1: $2 Mbit/s, not $3"
}

run_ranks "$OUT" a b -- --json --no-check --pairs 0-1 --channels 1 --sizes 1M --inflight 8 \
	--seconds 9 --repeat 1 --timeout 60 &
ranks=$!
# Round trips come first; the stream is what fills both.
wait_for "((\$(carried 0.3) >= 2 * $RATE * 95 / 100))" 30 || fail "the stream never fills both"
whole=$(carried 1)
at_least "both whole" "$whole" $((2 * RATE * 93 / 100))
mesh_shape a x2 "$((RATE / 10))mbit"
carried 1 >/dev/null # the second that it may take
at_least "one at a tenth" "$(carried 1.5)" $((whole * 55 * 95 / 10000))
mesh_shape a x2 "${RATE}mbit"
carried 1 >/dev/null
at_least "whole again" "$(carried 1.5)" $((whole * 95 / 100))
wait "$ranks" || { ranks_show "$OUT"; fail "the stream broke"; }
