#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_plan_interrupt.sh - Ctrl-C while `fi_mesh plan` writes files leaves nothing behind.
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# interrupted: Ctrl-C once it writes; its exit status is left in STATUS. False if all was written
# before the interrupt came: this script may have had no CPU meanwhile.
interrupted() {
	local pid

	rm -rf "$OUT/plan"
	"$MESH_BUILD/fi_mesh" plan ring "n[1-1000]" --write "$OUT/plan" >"$OUT/log" 2>&1 &
	pid=$!
	wait_for "[[ -e $OUT/plan/n2 ]]" 60 || { kill "$pid"; fail "no file was written in 60 s"; }
	kill -INT "$pid" 2>/dev/null
	wait "$pid"
	STATUS=$?
	[[ $STATUS != 0 || ! -e $OUT/plan/n1000 ]]
}

# A thousand files: there is time to interrupt, in some try.
for try in {1..10}; do
	interrupted && break
done
((STATUS == 1)) || fail "exit status $STATUS in try $try"
grep -q "interrupted" "$OUT/log" || { cat "$OUT/log"; fail "it does not say so"; }
[[ ! -e $OUT/plan ]] || fail "$OUT/plan is still there"
note "an interrupted plan leaves nothing"
