#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_plan_interrupt.sh - Ctrl-C while `fi_mesh plan` writes files leaves nothing behind.
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/functional/expect.sh
. "$here/expect.sh"

# Tens of thousands of files: there is time to interrupt.
"$MESH_BUILD/fi_mesh" plan ring "n[1-5000]" --write "$OUT/plan" >"$OUT/log" 2>&1 &
pid=$!
wait_for "[[ -e $OUT/plan/n2 ]]" 30 || { kill "$pid"; fail "no file was written in 30 s"; }
kill -INT "$pid" || fail "all was written before the interrupt"
wait "$pid"
status=$?
((status == 1)) || fail "exit status $status"
grep -q "interrupted" "$OUT/log" || { cat "$OUT/log"; fail "it does not say so"; }
[[ ! -e $OUT/plan ]] || fail "$OUT/plan is still there"
note "an interrupted plan leaves nothing"
