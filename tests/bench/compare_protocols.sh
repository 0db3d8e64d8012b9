#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measures every mapping of fabric_raw over one veth link, interleaved, and prints Markdown tables.
#
# usage: compare_protocols.sh [PATH OF fabric_raw]      (as root)
#        compare_protocols.sh --report FILE...          tables of files that KEEP kept
# environment: ROUNDS [5], RUN_SECONDS for each size [0.1], PROVIDERS ["net tcp;ofi_rxm"],
#              SIZES, KEEP=FILE keeps the raw JSON lines there

# report FILE...: the tables of all these JSON lines.
report() {
	python3 - "$@" <<'END'
import collections
import fileinput
import json
import math
import statistics
import sys

QUIET = 0.1  # runs while others used more of the machine than this are left out where 3 remain
cells = collections.defaultdict(list)
pair = []
providers, sizes, idle = [], [], collections.defaultdict(list)
for line in fileinput.input(sys.argv[1:]):
    run = json.loads(line)
    if "others" in run:
        for earlier in pair:
            earlier["others"] = run["others"]
        pair = []
        continue
    pair.append(run)
    if run["provider"] not in providers:
        providers.append(run["provider"])
    if run["mode"] == "idle":
        idle[run["provider"]].append(run["cq_read_ns"])
        continue
    if run["size"] not in sizes:
        sizes.append(run["size"])
    key = (run["provider"], run["mode"], run["late"],
           run["mapping"] + ("+dc" if run["delivery_complete"] else ""), run["size"])
    cells[key].append(run)


def short(value):
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return "%.*f" % (min(digits, 4), value)


def cell(field, *key):
    """Best of all runs (disturbance cannot improve it), then median and worst of the quiet ones."""
    runs = cells.get(key, [])
    quiet = [run for run in runs if run["others"] <= QUIET]
    counted = [run[field] for run in (quiet if len(quiet) >= 3 else runs)]
    if not counted:
        return "-"
    best, worst = (max, min) if field == "gbit_per_s" else (min, max)
    return "%s (%s, %s)%s" % (short(best(run[field] for run in runs)),
                              short(statistics.median(counted)), short(worst(counted)),
                              "" if len(quiet) >= 3 else " !")


def table(title, field, provider, mode, late, columns):
    print("\n%s, provider `%s`: best (median, worst), ! disturbed\n" % (title, provider))
    print("| size | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for size in sorted(sizes):
        name = "%d M" % (size >> 20) if size >= 1 << 20 else \
            "%d K" % (size >> 10) if size >= 1024 else str(size)
        print("| %s | %s |" % (name, " | ".join(cell(field, provider, mode, late, c, size)
                                              for c in columns)))


ALL = ["tagged", "msg", "eager", "write", "write+dc", "grant"]
for provider in providers:
    table("Gbit/s, 8 in flight", "gbit_per_s", provider, "stream", 0, ALL)
    table("Half round trip, us", "half_rtt_us", provider, "pingpong", 0, ALL)
    table("Late receiver (one receive at a time, sender 8 ahead), us a message",
          "us_per_message", provider, "stream", 1, ["tagged", "msg", "grant"])
    if idle[provider]:
        print("\nIdle `fi_cq_read`, provider `%s`: %.0f ns" %
              (provider, statistics.median(idle[provider])))
END
}

if [ "${1:-}" = --report ]; then
	shift
	report "$@"
	exit
fi

# shellcheck source=tests/functional/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../functional/lib.sh"

program=${1:-$MESH_BUILD/bench/fabric_raw}
rounds=${ROUNDS:-5}
seconds=${RUN_SECONDS:-0.1}
sizes=${SIZES:-8,1K,4K,8K,16K,32K,64K,128K,512K,1M,4M}
read -r -a providers <<<"${PROVIDERS:-net tcp;ofi_rxm}"
work=$MESH_BUILD/bench/protocols

[[ -x $program ]] || fail "no program $program (build it first)"
rm -rf "$work"
mkdir -p "$work" || fail "cannot make $work"
mesh_init
mesh_node a b
mesh_link a raw0 10.77.1.1/24 b raw0 10.77.1.2/24
congestion=/proc/sys/net/ipv4/tcp_congestion_control
for node in a b; do
	# With bbr the figures would show its pacing, as in nodes.py.
	on $node sh -c "grep -qw cubic $congestion || echo reno >$congestion"
done

# Two pollers on one core measure the scheduler, so each end has its own where there are two.
pin_left=(taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')")
pin_right=(taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/.*[-,]//')")

# cpu_ticks NAME: ticks that the whole machine was busy, that it had, and that our finished children
# used, as one line in $work/NAME. `times` must run in this shell, not in a child.
cpu_ticks() {
	times >"$work/times"
	awk -v hz="$(getconf CLK_TCK)" '
		function seconds(t, at) { split(t, at, "m"); return at[1] * 60 + at[2] }
		FNR == NR && FNR == 2 { own = (seconds($1) + seconds($2)) * hz }
		$1 == "cpu" {
			busy = $2 + $3 + $4 + $7 + $8 + $9
			print busy, busy + $5 + $6, own
		}' "$work/times" /proc/stat >"$work/$1"
}

# measure PROVIDER OPTION...: one pair of processes. Its JSON lines go to $work/lines, and after
# them the part of the machine that others used meanwhile.
measure() {
	local provider=$1
	shift
	cpu_ticks before
	mesh_spawn b "$work/server" timeout 120 "${pin_right[@]}" "$program" \
		--provider "$provider" --source 10.77.1.2
	on a timeout 120 "${pin_left[@]}" "$program" --provider "$provider" --source 10.77.1.1 \
		--peer 10.77.1.2 --json --seconds "$seconds" "$@" >>"$work/lines" &&
		wait "$MESH_SPAWNED" || { cat "$work/server"; fail "$provider $*"; }
	cpu_ticks after
	awk 'NR == 1 { busy = $1; all = $2; own = $3 }
	     NR == 2 { share = ($1 - busy - ($3 - own)) / ($2 - all + 1)
		       printf "{\"others\":%.3f}\n", (share > 0 ? share : 0) }' \
		"$work/before" "$work/after" >>"$work/lines"
}

for ((round = 1; round <= rounds; round++)); do
	for provider in "${providers[@]}"; do
		for mode in stream pingpong; do
			for mapping in tagged msg eager write grant; do
				measure "$provider" --mode $mode --mapping $mapping --sizes "$sizes"
			done
			measure "$provider" --mode $mode --mapping write --delivery-complete \
				--sizes "$sizes"
		done
		for mapping in tagged msg grant; do
			measure "$provider" --mode stream --mapping $mapping --late --sizes "$sizes"
		done
		measure "$provider" --mode idle
	done
	echo "compare_protocols: round $round of $rounds done" >&2
done
if [ -n "${KEEP:-}" ]; then cp "$work/lines" "$KEEP"; fi

report "$work/lines"
