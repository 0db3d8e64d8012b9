# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# bounds.sh - bounds of what tests/bench/run measures. To be sourced.

# shellcheck source=tests/functional/lib.sh
declare -F mesh_init >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Percent of a core without which a figure beyond its bound says nothing.
BOUNDS_QUIET=75
BOUNDS_OUT=$MESH_BUILD/functional/$(basename "$0" .sh).files

# bounds_hold WORKLOADS ROUNDS LIMIT WORDS...: runs them, options of tests/bench/run. Each LIMIT is
# that of the ratio or time that run calls WORDS (a regular expression), for a machine that others
# share: the medians of the rounds ("measured"), or the best ones, are within. Noise only slows a
# run down, and the best one may be one lucky run; what is slow by design has neither.
bounds_hold() {
	case $MESH_BUILD in
	*sanitize*) skip "sanitizers slow the plugin down, but not links and libfabric" ;;
	esac
	[[ -x $MESH_BUILD/bench/plugin_bench ]] || fail "plugin_bench is not built"
	mesh_init
	BOUNDS=("$@")
	try_while_busy $BOUNDS_QUIET bounds_once || fail "a figure is beyond its bound"
}

bounds_once() {
	rm -rf "$BOUNDS_OUT"
	# shellcheck disable=SC2086 # several options
	"$MESH_TOP/tests/bench/run" --build "$MESH_BUILD" ${BOUNDS[0]} --rounds "${BOUNDS[1]}" \
		--out "$BOUNDS_OUT" >"$BOUNDS_OUT.log" 2>&1 ||
		{ cat "$BOUNDS_OUT.log"; fail "tests/bench/run"; }
	python3 - "$BOUNDS_OUT/results.json" "${BOUNDS[@]:2}" <<-'END'
		import json, re, sys
		bounds = json.load(open(sys.argv[1]))["bounds"]
		fine = True
		for limit, words in zip(sys.argv[2::2], sys.argv[3::2]):
		    (bound,) = [b for b in bounds if re.search(words, b["what"])]
		    figures = [bound["measured"], bound["best"]]
		    limit = float(limit)
		    more = bound["better"] == "more"
		    fine &= max(figures) >= limit if more else min(figures) <= limit
		    print("  %s: medians %.2f, best runs %.2f (at %s %.2f)" % (
		        bound["what"], bound["measured"], bound["best"],
		        "least" if more else "most", limit))
		sys.exit(0 if fine else 3)
	END
	local status=$?

	((status == 0 || status == 3)) || fail "no figure to compare with its bound"
	return $status
}
