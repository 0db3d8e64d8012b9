#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# figures.sh - bandwidth and latency over soft-RoCE: the plugin beside what it is made of.
#
#	tests/vm/run tests/vm/figures.sh
#
# One link, and on it in turn: perftest's RDMA writes (verbs alone), fabric_raw's RDMA writes
# (libfabric alone), fi_pingpong, and the plugin. An emulated device's speed means nothing: only the
# ratios count, and on a busy machine they vary much. FIGURES_ROUNDS rounds (default 3),
# interleaved, of which the median counts.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

ROUNDS=${FIGURES_ROUNDS:-3}
SIZE=$((1 << 20)) SMALL=8
MESSAGES=120
ROUND_TRIPS=2000
SERVER=10.77.1.2 CLIENT=10.77.1.1
SAMPLES=$OUT/samples

sample() { echo "$*" >>"$SAMPLES"; } # TOOL UNIT VALUE

# pair LOG CONDITION SERVER_COMMAND... -- CLIENT_COMMAND...: starts the client when the condition
# holds. What it prints is in $OUT/LOG.client.
pair() {
	local log=$1 ready=$2 server=() pid

	shift 2
	while [[ $1 != -- ]]; do server+=("$1"); shift; done
	shift
	mesh_spawn b "$OUT/$log.server" timeout 100 "${server[@]}"
	pid=$MESH_SPAWNED
	wait_for "$ready" 60 || fail "$log: the server does not start"
	on a timeout 100 "$@" >"$OUT/$log.client" 2>"$OUT/$log.errors" ||
		{ cat "$OUT/$log".*; fail "$log"; }
	# The figures are complete: the server's exit status does not matter.
	wait "$pid" || note "$log: the server ended with status $?" >&2
}

listens() { echo "on b ss -Hltn 'sport = :$1' | grep -q ."; }

# perftest counts cycles and asks /proc/cpuinfo how fast they are, which is missing here.
clock_rate_set() {
	printf 'processor\t: 0\ncpu MHz\t\t: %s\n' "$VM_MHZ" >/run/cpuinfo
	busybox mount -o bind /run/cpuinfo /proc/cpuinfo || fail "cannot show the clock's rate"
}

# perftest TOOL SIZE COUNT FIELD: that field of the line of figures. perftest measures the clock
# itself, too, and prints 0 or nan where a busy machine disturbed it: then once more.
perftest() {
	local try value

	for try in {1..10}; do
		pair "$1" "$(listens 18515)" "$1" -d rxe_ba -x 1 -s "$2" -n "$3" -F \
			-- "$1" -d rxe_ab -x 1 -s "$2" -n "$3" -F $SERVER
		value=$(awk -v size="$2" -v field="$4" '$1 == size {print $field}' "$OUT/$1.client")
		[[ $value =~ [1-9] ]] && break
		note "try $try of $1: no figure" >&2
	done
	echo "$value"
}

verbs_alone() {
	sample ib_write MiB/s "$(perftest ib_write_bw $SIZE $MESSAGES 4)"
	sample ib_write us "$(perftest ib_write_lat $SMALL $ROUND_TRIPS 5)"
}

# raw MAPPING MODE SIZE COUNT: fabric_raw's JSON line is in $OUT/raw.client.
raw() {
	local raw=("$MESH_BUILD/bench/fabric_raw" --provider "verbs;ofi_rxm")

	pair raw "$(listens 18515)" "${raw[@]}" --source $SERVER \
		-- "${raw[@]}" --source $CLIENT --peer $SERVER --mapping "$1" --mode "$2" \
		--sizes "$3" --iters "$4" --json
}

# json FILE EXPRESSION: of the last line, as python's `j`.
json() { tail -1 "$1" | python3 -c "import json,sys; j=json.load(sys.stdin); print($2)"; }

libfabric_alone() {
	raw write stream $SIZE $MESSAGES
	sample fabric_raw MiB/s "$(json "$OUT/raw.client" "j['gbit_per_s'] * 1e9 / 8 / 2**20")"
	raw write pingpong $SMALL $ROUND_TRIPS
	sample fabric_raw us "$(json "$OUT/raw.client" "j['half_rtt_us']")"
}

# fi_pingpong's last line: bytes, iterations, total, time, MB/s, us for one transfer, Mxfers/s.
pingpong() {
	pair fi_pingpong "$(listens 47592)" \
		fi_pingpong -p "verbs;ofi_rxm" -e rdm -d rxe_ba -I "$2" -S "$1" \
		-- fi_pingpong -p "verbs;ofi_rxm" -e rdm -d rxe_ab -I "$2" -S "$1" $SERVER
}

libfabrics_own() {
	pingpong $SIZE $MESSAGES
	sample fi_pingpong MiB/s "$(awk 'END {print $6 / 1.048576}' "$OUT/fi_pingpong.client")"
	pingpong $SMALL $ROUND_TRIPS
	sample fi_pingpong us "$(awk 'END {print $7}' "$OUT/fi_pingpong.client")"
}

the_plugin() {
	ranks_pass plugin a b -- --pairs 0-1 --no-check --sizes $SMALL,$SIZE --iters $MESSAGES \
		--repeat 1 --channels 1
	python3 - "$OUT/plugin/rank0.out" >>"$SAMPLES" <<-'END'
		import json, sys
		text = open(sys.argv[1]).read()
		text = text[text.index("{\n"):text.rindex("\n}") + 2]
		small, large = json.loads(text)["pairs"][0]["sizes"]
		print("plugin MiB/s", large["gbit_s"] * 1e9 / 8 / 2**20)
		print("plugin us", small["half_rtt_us"])
	END
}

# Medians, and what they are of the first's.
report() {
	python3 - "$SAMPLES" <<-'END'
		import statistics, sys
		samples = {}
		for line in open(sys.argv[1]):
		    tool, unit, value = line.split()
		    samples.setdefault(unit, {}).setdefault(tool, []).append(float(value))
		for unit, tools in samples.items():
		    first = None
		    for tool, values in tools.items():
		        median = statistics.median(values)
		        first = first or median
		        print("%-12s %10.1f %-6s %5.2f  (%s)" % (tool, median, unit, median / first,
		              " ".join("%.1f" % v for v in values)))
	END
}

for tool in ib_write_bw ib_write_lat fi_pingpong ss; do
	command -v $tool >/dev/null || skip "'$tool' is missing (scripts/install-deps.sh)"
done
clock_rate_set
mesh_init
mesh_node a b
mesh_link a ab $CLIENT/24 b ba $SERVER/24
rdma_up
for ((round = 1; round <= ROUNDS; round++)); do
	verbs_alone
	libfabric_alone
	libfabrics_own
	the_plugin
	note "round $round of $ROUNDS: load $(cut -d' ' -f1 /proc/loadavg)"
done
report
