#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_striping.sh - one connection over several shaped cables: their rates add up.
# alone: measures
#
# A shaped cable (tbf) is a limit that the noise of the machine does not move: one round is enough
# when it holds. Else the median of up to three decides; one cable and several take turns.
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/lib.sh"

OUT=$MESH_BUILD/striping
ROUNDS=${ROUNDS:-3}
RATE=${RATE:-500}

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not the cables" ;;
esac
mesh_init
mesh_node a b
rm -rf "$OUT"

# cables RATE...: that many cables between a and b, each with its rate in Mbit/s, both ways.
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

uncable() {
	local i

	for ((i = 1; i <= NUM_CABLES; i++)); do ip -n "${MESH_PREFIX}a" link del x$i; done
}

# stream PATHS DEV SIZES INFLIGHT: prints "BYTES GBIT" for each size, over at most PATHS cables.
stream() {
	RANKS_ENV=("NCCL_MESH_MAX_PATHS=$1")
	run_ranks "$OUT/run" a b -- --json --no-check --pairs 0-1 --channels 1 --dev "$2" \
		--sizes "$3" --inflight "$4" --seconds 1 --repeat 1 --timeout 60 ||
		{ ranks_show "$OUT/run"; fail "the run over $1 cables"; }
	RANKS_ENV=()
	python3 - "$OUT/run/rank0.out" <<-'END'
		import json, sys
		text = open(sys.argv[1]).read()
		for size in json.loads(text[text.index("{"):])["pairs"][0]["sizes"]:
		    print(size["bytes"], size["gbit_s"])
	END
}

# judge NAME AT_LEAST RATE...: prints the medians of the rounds so far; status 1 if one is too low.
judge() {
	python3 - "$1" "$2" "$OUT.one" "$OUT.all" "${@:3}" <<-'END'
		import statistics, sys
		name, least = sys.argv[1], float(sys.argv[2])
		rates = [float(r) for r in sys.argv[5:]]
		def medians(path):
		    found = {}
		    for line in open(path):
		        size, gbit = line.split()
		        found.setdefault(int(size), []).append(float(gbit))
		    return {size: statistics.median(all) for size, all in found.items()}
		one, all_of_them = medians(sys.argv[3]), medians(sys.argv[4])
		bound = least * sum(rates) / rates[0]
		worst = 0
		for size in sorted(one):
		    ratio = all_of_them[size] / one[size]
		    worst |= ratio < bound
		    print("%s, %d KiB: %.3f Gbit/s, one cable %.3f, %.2f times (at least %.2f)"
		          % (name, size >> 10, all_of_them[size], one[size], ratio, bound))
		sys.exit(worst)
	END
}

# compare NAME AT_LEAST SIZES INFLIGHT RATE...: all cables beside the first alone. The sum of the
# rates, in units of the first, times AT_LEAST is the bound. More rounds only if one falls short.
compare() {
	local name=$1 least=$2 sizes=$3 inflight=$4 round short=1

	shift 4
	cables "$@"
	: >"$OUT.one"
	: >"$OUT.all"
	for ((round = 0; round < ROUNDS && short; round++)); do
		stream 1 0 "$sizes" "$inflight" >>"$OUT.one" || exit 1
		stream 8 0 "$sizes" "$inflight" >>"$OUT.all" || exit 1
		judge "$name" "$least" "$@" && short=0
	done
	uncable
	((!short)) || FAILED=1
}

FAILED=0
compare "two cables" 0.975 1M,4M 8 "$RATE" "$RATE"
compare "two cables, 4 in flight" 0.975 1M 4 "$RATE" "$RATE"
compare "three cables" 0.967 1M,4M 8 "$RATE" "$RATE" "$RATE"
compare "1:2" 0.95 1M,4M 8 "$RATE" $((2 * RATE))
compare "1:4" 0.95 1M,4M 8 "$RATE" $((4 * RATE))
((!FAILED)) || fail "several cables do not add up"
