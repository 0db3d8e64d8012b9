#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_performance.sh - one stream and one ping-pong of the plugin, beside raw libfabric.
#
# The bounds: bandwidth of large messages at least 0.9 of raw libfabric's best way to move them,
# half a round trip of 8 bytes at most 1.5 of it: 1.2 is usual, and the best of twelve rounds was
# 1.35 once on a shared machine. The goal, 1.3, is for tests/bench to measure. Both run in turn on
# one link, a core for each, and both yield after every idle poll: whatever else wants the core
# takes as much from one as from the other.
# The machine is shared and its noise only slows a run down, so the best of all rounds counts on
# either side; a plugin that is slow by design never gets there, however many rounds it has. Where
# hardly a round had both cores to itself a ratio that is too low says nothing: a skip.
# alone: it measures
set -u
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ROUNDS_MIN=5
ROUNDS_MAX=${ROUNDS_MAX:-12}
LIMIT_S=200 # after which no round begins
LATENCY_MAX=1.5
QUIET=90    # percent of a core that a round has to itself
OUT=$MESH_BUILD/performance
RAW=$MESH_BUILD/bench/fabric_raw
PORT=18515

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down, but not libfabric" ;;
esac
[[ -x $RAW ]] || fail "$RAW is not built"
mesh_init
mesh_node a
mesh_node b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
mkdir -p "$OUT"

# raw MAPPING MODE SIZE: prints the figure, Gbit/s or us.
raw() {
	mesh_spawn b "$OUT/raw-server" taskset -c 1 "$RAW" --source 10.77.1.2 --port $PORT
	local server=$MESH_SPAWNED

	wait_for "on b ss -Hltn sport = :$PORT | grep -q ." 60 || fail "raw server did not start"
	on a taskset -c 0 "$RAW" --source 10.77.1.1 --peer 10.77.1.2 --port $PORT --json \
		--mapping "$1" --mode "$2" --sizes "$3" --seconds 0.3 --yield 1 >"$OUT/raw.json" ||
		fail "raw libfabric: $1 $2 $3"
	wait "$server"
	python3 - "$OUT/raw.json" "$2" <<-'END'
		import json, sys
		figures = json.loads(open(sys.argv[1]).read().splitlines()[-1])
		print(figures["gbit_per_s"] if sys.argv[2] == "stream" else figures["half_rtt_us"])
	END
}

# plugin: prints bandwidth of 1 MiB and 4 MiB, and half a round trip of 8 bytes.
plugin() {
	run_ranks "$OUT/plugin" a b -- --json --no-check --pairs 0-1 --channels 1 --timeout 30 \
		--sizes 8,1M,4M --seconds 0.3 --repeat 3 ||
		{ ranks_show "$OUT/plugin"; fail "the plugin's run"; }
	python3 - "$OUT/plugin/rank0.out" <<-'END'
		import json, sys
		text = open(sys.argv[1]).read()
		pair = json.loads(text[text.index("{"):])["pairs"][0]
		sizes = {s["bytes"]: s for s in pair["sizes"]}
		print(sizes[1 << 20]["gbit_s"], sizes[4 << 20]["gbit_s"], sizes[8]["half_rtt_us"])
	END
}

most() { awk -v a="$1" -v b="$2" 'BEGIN {print (a > b) ? a : b}'; }
least() { awk -v a="$1" -v b="$2" 'BEGIN {print (a < b) ? a : b}'; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", a / b}'; }
holds() { awk "BEGIN {exit !($1)}"; }

RANKS_PIN=(0 1)
raw_1m=0 raw_4m=0 raw_us=1e9 our_1m=0 our_4m=0 our_us=1e9 quiet=0
for ((round = 1; round <= ROUNDS_MAX && SECONDS < LIMIT_S; round++)); do
	before=$(core_share)
	for mapping in tagged write grant; do
		figure=$(raw $mapping stream 1M) || exit 1
		raw_1m=$(most "$raw_1m" "$figure")
		figure=$(raw $mapping stream 4M) || exit 1
		raw_4m=$(most "$raw_4m" "$figure")
	done
	for mapping in eager write; do
		figure=$(raw $mapping pingpong 8) || exit 1
		raw_us=$(least "$raw_us" "$figure")
	done
	figures=$(plugin) || exit 1
	read -r m1 m4 us <<<"$figures"
	our_1m=$(most "$our_1m" "$m1")
	our_4m=$(most "$our_4m" "$m4")
	our_us=$(least "$our_us" "$us")
	r1=$(ratio "$our_1m" "$raw_1m")
	r4=$(ratio "$our_4m" "$raw_4m")
	rl=$(ratio "$our_us" "$raw_us")
	((before < QUIET || $(core_share) < QUIET)) || ((++quiet))
	((round < ROUNDS_MIN)) || ! holds "$r1 >= 0.9 && $r4 >= 0.9 && $rl <= $LATENCY_MAX" || break
done
note "rounds: $((round < ROUNDS_MAX ? round : ROUNDS_MAX)), $quiet of them quiet, best of each side"
note "1 MiB: plugin $our_1m, raw $raw_1m Gbit/s, ratio $r1 (at least 0.9)"
note "4 MiB: plugin $our_4m, raw $raw_4m Gbit/s, ratio $r4 (at least 0.9)"
note "8 B: plugin $our_us, raw $raw_us us half round trip, ratio $rl (at most $LATENCY_MAX)"
holds "$r1 >= 0.9 && $r4 >= 0.9 && $rl <= $LATENCY_MAX" && exit
((quiet >= ROUNDS_MIN)) || skip "this machine is busy: ratios $r1, $r4 and $rl say nothing"
fail "the plugin is slower than it may be"
