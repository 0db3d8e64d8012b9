#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_delay.sh - messages of 4 MiB and registrations of 4 GiB on one comm do not delay another
# comm's round trips of 8 bytes by more than 1 ms (medians of the longest of five runs).
#
# Each of the two processes has one thread for both comms, as NCCL's proxy has, and while it
# measures nothing else gets its CPU. Where that is not permitted, a busy machine's figures say
# nothing: a skip.
# alone: it takes the CPUs
# seconds: 25
# long: it measures; test_other_comms
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

QUIET=90 # percent of a core
OUT=$MESH_BUILD/functional/test_delay

case $MESH_BUILD in
*sanitize*) skip "sanitizers slow the plugin down" ;;
esac
[[ -x $MESH_BUILD/bench/plugin_bench ]] || fail "plugin_bench is not built"
mesh_init
rm -rf "$OUT"
before=$(core_share)
"$MESH_TOP/tests/bench/run" --build "$MESH_BUILD" --quick --rounds 5 --only delay --out "$OUT" \
	>"$OUT.log" 2>&1 || { cat "$OUT.log"; fail "tests/bench/run"; }
after=$(core_share)
python3 - "$OUT/results.json" <<-'END' && exit
	import json, sys
	results = json.load(open(sys.argv[1]))
	cells = results["figures"]["delay"]["cells"]
	assert {c["x"] for c in cells if c["competitor"] == "mesh"} == {1, 2, 3}, cells
	assert len(results["bounds"]) == 2, results["bounds"]
	for cell in cells:
	    print("  %s, while the other comm %s: longest of each run %s us" % (
	        cell["competitor"], cell["label"], " ".join("%.0f" % r for r in cell["runs"])))
	for bound in results["bounds"]:
	    print("  %s: %.2f (at most %.0f)" % (bound["what"], bound["measured"], bound["bound"]))
	sys.exit(not all(bound["holds"] for bound in results["bounds"]))
END
((before >= QUIET && after >= QUIET)) || chrt -f 1 true 2>/dev/null ||
	skip "this machine is busy, and a process cannot have a CPU for itself"
fail "another comm delays round trips"
