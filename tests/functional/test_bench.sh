#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_bench.sh - tests/bench/run writes all it promises, and its driver sees wrong bytes.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

BENCH=$MESH_BUILD/bench/plugin_bench
FAKE=$MESH_BUILD/unit/fake_plugin.so

case $MESH_BUILD in
*sanitize*) skip "the benchmark is about speed" ;;
esac
[[ -x $BENCH && -r $FAKE ]] || fail "$BENCH or $FAKE is not built"
mesh_init
DIR=$MESH_BUILD/functional/bench
rm -rf "$DIR"
mkdir -p "$DIR"

# --- a whole run, as short as can be ---------------------------------------------------------

"$MESH_TOP/tests/bench/run" --build "$MESH_BUILD" --quick --rounds 1 --out "$DIR/out" \
	--only stream --only pingpong --only setup \
	--plugin "$MESH_BUILD/libnccl-net-mesh.so" --label again >"$DIR/log" 2>&1 ||
	{ cat "$DIR/log"; fail "tests/bench/run"; }
python3 - "$DIR/out" <<-'END' || fail "what tests/bench/run wrote"
	import json, sys
	folder = sys.argv[1]
	results = json.load(open(folder + "/results.json"))
	assert results["schema"] == 1 and not results["failures"], results["failures"]
	everybody = {"TCP", "fi tagged", "mesh", "again"}
	for name, competitors in (("stream-8", everybody), ("cpu", everybody),
	                          ("pingpong", everybody), ("setup", {"TCP", "mesh", "again"})):
	    cells = results["figures"][name]["cells"]
	    assert {c["competitor"] for c in cells} == competitors, (name, cells)
	    for cell in cells:
	        assert 0 < cell["least"] <= cell["median"] <= cell["most"], cell
	        assert (cell["competitor"] == "mesh") == ("ratio" not in cell), cell
	assert len(results["bounds"]) == 3, results["bounds"]
	text = open(folder + "/results.txt").read()
	assert "What must hold" in text and "Ping-pong" in text
	assert "| message size | TCP " in text and " mesh " in text and " again " in text, text
	END
note "table and JSON are there"

# --- the bound of instructions can be broken ---------------------------------------------------

cost() { "$MESH_TOP/tests/bench/cost.py" check --build "$MESH_BUILD" "$@" >"$DIR/cost" 2>&1; }

# The relay's figure, which takes a minute, is left to ./test.sh cost.
sed -E -e 's/("8 B": )[0-9]+/\1100/' -e '/"relay/d' \
	"$MESH_TOP/tests/bench/cost.json" >"$DIR/low.json"
cost --bound "$DIR/low.json"
case $? in
1)
	if ! grep -q '^8 B .*MORE THAN' "$DIR/cost" || ! grep -q '^512 KiB .*ok' "$DIR/cost"; then
		cat "$DIR/cost"
		fail "cost.py finds the wrong figure"
	fi
	note "a figure above its bound fails"
	;;
77) note "not counted here: $(sed -n 's/^SKIP: //p' "$DIR/cost")" ;;
*) cat "$DIR/cost"; fail "cost.py did not notice a bound that was broken" ;;
esac

# --- the driver sees what a plugin does wrong, in each workload --------------------------------

# bench FAULT WORKLOAD: both ranks here, over the loopback interface.
bench() {
	local common=(--meet "$DIR/meet" --workload "$2" --plugin "$FAKE" --seconds 0.01
		--sizes 256K --comms 20)

	FAKE_PLUGIN_FAULT=$1 timeout 300 "$BENCH" --rank 1 "${common[@]}" >"$DIR/rank1" 2>&1 &
	FAKE_PLUGIN_FAULT=$1 timeout 300 "$BENCH" --rank 0 "${common[@]}" >"$DIR/rank0" 2>&1
	local status=$?

	wait $! && ((status == 0))
}

expect_words() { grep -qE "$1" "$DIR/rank0" "$DIR/rank1"; }

for workload in stream pingpong ring setup share; do
	bench none $workload || { cat "$DIR"/rank?; fail "$workload with a plugin that behaves"; }
	for fault in flip lost-bytes wrong-size; do
		bench $fault $workload && fail "$workload does not see the fault $fault"
		expect_words 'wrong (bytes|sum)|reported [0-9]+ bytes' ||
			{ cat "$DIR"/rank?; fail "$workload says nothing about the fault $fault"; }
	done
	note "$workload sees wrong bytes and sizes"
done
