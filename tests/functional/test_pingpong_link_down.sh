#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_pingpong_link_down.sh - a link that goes down before its pair's turn: fabric_pingpong reports
# that this pair failed, with the plugin's reason, and not another NIC and "ok". Once it is up
# again, the pair connects.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

mesh_init
mesh_up triangle patched
# Node a would relay for the other two.
RANKS_ENV=(NCCL_MESH_RELAY=off)
# unplugged RUN: the cable is pulled before the last pair's turn, which waits for node b. Rank 0
# logs its first path when all ranks have loaded the plugin and looked at their NICs.
unplugged() {
	local pids

	wait_for "grep -qs 'path: from=' $OUT/$1/rank0.out" 60
	mapfile -t pids < <(mesh_namespace_pids "$(mesh_ns b)")
	kill -STOP "${pids[@]}"
	mesh_unplug b bc
	kill -CONT "${pids[@]}"
}
unplugged run &
! run_ranks "$OUT/run" a b c -- --json -v --timeout 8 --sizes 8 --seconds 0.5 --check-max 4K \
	--pairs 0-1,0-2,1-2 || fail "the ranks end well"
wait
python3 - "$OUT/run/rank0.out" <<-'END' || { ranks_show "$OUT/run"; fail "a wrong report"; }
	import json, sys
	text = open(sys.argv[1]).read()
	report = json.loads(text[text.index("{\n"):])
	ab, ac, bc = report["pairs"]
	assert ab["ok"] and ac["ok"] and not bc["ok"] and not report["ok"], report
	assert not bc["paths"] and "not finished" in bc["errors"][0], bc
	words = "still connecting from bc to node c", "(bc has no carrier"
	assert any(all(w in error for w in words) for error in report["errors"]), report
END
note "the pair without a link is not ok, with the plugin's reason"
# The same, but the cable comes back: the NIC is opened then, and the pair connects.
mesh_plug b bc
(
	unplugged back
	wait_for "grep -qs 'still connecting from bc' $OUT/back/rank1.out" 60
	mesh_plug b bc
) &
run_ranks "$OUT/back" a b c -- --json -v --timeout 30 --sizes 8 --seconds 0.5 --check-max 4K \
	--pairs 0-1,0-2,1-2 || { ranks_show "$OUT/back"; fail "the pair does not connect"; }
wait
note "once the link is back, the pair connects"
