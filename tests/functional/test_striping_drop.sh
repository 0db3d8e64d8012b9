#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_striping_drop.sh - one of two cables drops to a tenth of its rate in mid-run: a second
# later both together carry what they can, and when it is back it is used again.
#
# If CPU is short, the bounds are not reached. The test is then repeated with slower cables, and
# ENOUGH of the bounds passes: a cable that is left idle, or delays the other, is far below. If no
# try had half of each core to itself, the test is skipped.
# alone: measures
# seconds: 30
# long: it measures; test_return
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OUT=$MESH_BUILD/striping_drop
RATE=${RATE:-500} # Mbit/s
# For each try: what RATE is divided by and seconds are multiplied with, and percent of the bounds.
TRIES=("1 100" "1 100" "1 88" "2 88" "4 88")
QUIET=50 # percent of a core

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not the cables" ;;
esac
# shape RATE: both cables, in both directions.
shape() {
	local i

	for i in 1 2; do
		mesh_shape a x$i "$1mbit"
		mesh_shape b x$i "$1mbit"
	done
}

# carried MS: Mbit/s that both of a's cables carry from now on, in bytes of the wire.
carried() {
	on a python3 - "$1" <<-'END'
		import sys, time
		def sent():
		    return sum(int(open("/sys/class/net/x%d/statistics/tx_bytes" % i).read())
		               for i in (1, 2))
		start, before = time.monotonic(), sent()
		while time.monotonic() - start < float(sys.argv[1]) / 1000:
		    time.sleep(0.01)  # between two looks at the clock
		print("%d" % ((sent() - before) * 8 / (time.monotonic() - start) / 1e6))
	END
}

# at_least WHEN MBIT BOUND: ENOUGH percent of BOUND.
at_least() {
	local bound=$(($3 * ENOUGH / 100))

	note "$1: $2 Mbit/s (at least $bound)"
	(($2 >= bound))
}

# drop RATE SLOWER: while the stream lasts, one cable drops and comes back.
drop() {
	local rate=$1 second=$(($2 * 1000)) whole

	# Round trips come first and last as long as the stream then, which is what fills both.
	wait_for "((\$(carried $((second * 3 / 10))) >= 2 * $rate * 95 * ENOUGH / 10000))" \
		$((20 * $2)) || { note "the stream never fills both"; return 1; }
	whole=$(carried "$second")
	at_least "both whole" "$whole" $((2 * rate * 93 / 100)) || return
	mesh_shape a x2 "$((rate / 10))mbit"
	carried "$second" >/dev/null # the second that it may take
	at_least "one at a tenth" "$(carried $((second * 3 / 2)))" $((whole * 55 * 95 / 10000)) ||
		return
	mesh_shape a x2 "${rate}mbit"
	carried "$second" >/dev/null
	at_least "whole again" "$(carried $((second * 3 / 2)))" $((whole * 95 / 100))
}

# try SLOWER: a stream, and all that happens meanwhile.
try() {
	local slower=$1 rate=$((RATE / $1)) good=0 ranks

	shape "$rate"
	run_ranks "$OUT" a b -- --json --no-check --pairs 0-1 --channels 1 --sizes 1M \
		--inflight 8 --seconds $((12 * slower)) --repeat 1 --timeout 60 &
	ranks=$!
	drop "$rate" "$slower" || good=1
	wait "$ranks" || { ranks_show "$OUT"; fail "the stream broke"; }
	return $good
}

mesh_init
mesh_node a b
for i in 1 2; do mesh_link a x$i 10.77.$i.1/24 b x$i 10.77.$i.2/24; done
quiet=0
for how in "${TRIES[@]}"; do
	read -r slower ENOUGH <<<"$how"
	share=$(core_share)
	try "$slower" && exit
	((share < QUIET || $(core_share) < QUIET)) || quiet=1
	note "once more"
done
((quiet)) || skip "this machine is too busy to fill two cables"
fail "a cable's drop is not made up for"
