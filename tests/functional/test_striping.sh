#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_striping.sh - one connection over several shaped cables: their rates add up.
# alone: measures
#
# A shaped cable (tbf) is a limit that the noise of the machine does not lift: the best of several
# rounds counts on either side, and one round is enough if it reaches the wanted rate. If CPU is
# short, ENOUGH of that passes, with a message: a cable that is left idle, or a split that ignores
# the rates, is far below. If even that is not reached, the test is repeated with cables half as
# fast, and half of those; if no try had half of each core to itself, the test is skipped.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OUT=$MESH_BUILD/striping
ROUNDS=${ROUNDS:-3} # at each rate
RATE=${RATE:-500}   # Mbit/s of the slowest cable
SLOWER=(1 2 4)      # and what it is divided by
ENOUGH=0.88         # of what is wanted
QUIET=50            # percent of a core

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not the cables" ;;
esac
mesh_init
mesh_node a b
rm -rf "$OUT"

# cables RATE...: as many cables between a and b, each with its rate in Mbit/s both ways.
cables() {
	local i=0 rate

	for rate in "$@"; do
		i=$((i + 1))
		mesh_link a x$i 10.77.$i.1/24 b x$i 10.77.$i.2/24
		mesh_shape a x$i "${rate}mbit"
		mesh_shape b x$i "${rate}mbit"
	done
	NUM_CABLES=$i
}

cables_remove() {
	local i

	for ((i = 1; i <= NUM_CABLES; i++)); do uncable a x$i; done
}

# stream PATHS SECONDS SIZES INFLIGHT: prints "BYTES GBIT" for each size, over at most PATHS
# cables.
stream() {
	RANKS_ENV=("NCCL_MESH_MAX_PATHS=$1")
	run_ranks "$OUT/run" a b -- --json --no-check --pairs 0-1 --channels 1 --dev 0 \
		--sizes "$3" --inflight "$4" --seconds "$2" --repeat 1 --timeout 60 ||
		{ ranks_show "$OUT/run"; fail "the run over $1 cables"; }
	RANKS_ENV=()
	python3 - "$OUT/run/rank0.out" <<-'END'
		import json, sys
		text = open(sys.argv[1]).read()
		for size in json.loads(text[text.index("{"):])["pairs"][0]["sizes"]:
		    print(size["bytes"], size["gbit_s"])
	END
}

# judge NAME WANTED RATE...: prints the best of the rounds so far. Status 1 if one is lower than
# wanted, 2 if it is lower than enough.
judge() {
	python3 - "$1" "$2" "$ENOUGH" "$OUT.one" "$OUT.all" "${@:3}" <<-'END'
		import sys
		name, wanted, enough = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
		rates = [float(r) for r in sys.argv[6:]]
		def best(path):
		    found = {}
		    for line in open(path):
		        size, gbit = line.split()
		        found[int(size)] = max(float(gbit), found.get(int(size), 0))
		    return found
		one, all_of_them = best(sys.argv[4]), best(sys.argv[5])
		wanted *= sum(rates) / rates[0]
		short = 0
		for size in sorted(one):
		    ratio = all_of_them[size] / one[size]
		    short = max(short, (ratio < wanted) + (ratio < enough * wanted))
		    print("%s, %d KiB: %.3f Gbit/s, one cable %.3f, %.2f times (wanted: %.2f)"
		          % (name, size >> 10, all_of_them[size], one[size], ratio, wanted))
		sys.exit(short)
	END
}

# at_rates SECONDS NAME WANTED SIZES INFLIGHT RATE...: all cables beside the first alone, in turn.
# The sum of the rates, in units of the first, times WANTED is what is wanted. More rounds only if
# one falls short; status as judge's. Sets quiet.
at_rates() {
	local seconds=$1 name=$2 wanted=$3 sizes=$4 inflight=$5 round short=2 share

	shift 5
	cables "$@"
	: >"$OUT.one"
	: >"$OUT.all"
	for ((round = 0; round < ROUNDS && short; round++)); do
		share=$(core_share)
		stream 1 "$seconds" "$sizes" "$inflight" >>"$OUT.one" || exit 1
		stream 8 "$seconds" "$sizes" "$inflight" >>"$OUT.all" || exit 1
		judge "$name" "$wanted" "$@"
		short=$?
		((share < QUIET || $(core_share) < QUIET)) || quiet=1
	done
	cables_remove
	return $short
}

# compare NAME WANTED SIZES INFLIGHT TIMES...: the cables have so many times the slowest's rate.
# Slower cables take as many bytes, in more time.
compare() {
	local slower times rates quiet=0

	for slower in "${SLOWER[@]}"; do
		rates=()
		for times in "${@:5}"; do rates+=($((RATE * times / slower))); done
		at_rates "$slower" "$1, ${rates[*]} Mbit/s" "${@:2:3}" "${rates[@]}"
		case $? in
		0) return ;;
		1)
			note "$1: less than wanted, but enough: is the machine busy?"
			return
			;;
		esac
	done
	FAILED=1
	((!quiet)) || QUIET_FAILED=1
}

FAILED=0 QUIET_FAILED=0
compare "two cables" 0.975 1M,4M 8 1 1
compare "two cables, 4 in flight" 0.975 1M 4 1 1
compare "three cables" 0.967 4M 8 1 1 1
compare "1:2" 0.95 1M 8 1 2
compare "1:4" 0.95 4M 8 1 4
((!QUIET_FAILED)) || fail "several cables do not add up"
((!FAILED)) || skip "this machine is too busy to fill several cables"
