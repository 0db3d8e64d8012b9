#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_again.sh - a test that fails once is run again by itself, and everybody can see it. A test
# that is listed as failing does not fail a run.
#
# A tree of stand-ins around the real test.sh, tests/functional/run and tests/arm64/run.
# seconds: 3
# shellcheck disable=SC2016 # expanded where it is run
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TREE=$(mktemp -d)
trap 'rm -rf "$TREE"' EXIT

fail() { echo "FAIL: $*" >&2; sed 's/^/  /' "$TREE/out" >&2; exit 1; }
says() { grep -qE "$1" "$TREE/out" || fail "it does not print '$1'"; }
silent() { ! grep -qE "$1" "$TREE/out" || fail "it prints '$1'"; }

mkdir -p "$TREE/tests/functional" "$TREE/bin"
cp "$TOP/test.sh" "$TREE/"
cp "$TOP/tests/ahead.sh" "$TOP/tests/again.sh" "$TOP/tests/jobs.sh" \
	"$TOP/tests/kallsyms.sh" "$TREE/tests/"
cp "$TOP/tests/functional/run" "$TREE/tests/functional/"
cp -r "$TOP/tests/arm64" "$TOP/tests/debian.sh" "$TREE/tests/"

# stand_in NAME: a test whose script comes from stdin; it knows TREE and how often it has run.
stand_in() {
	{
		echo '#!/usr/bin/env bash'
		echo "TREE=$TREE"
		echo "echo >>\$TREE/runs.$1; runs=\$(wc -l <\$TREE/runs.$1)"
		cat
	} >"$TREE/tests/functional/test_$1.sh"
}

# tests_run STATUS: runs them all; all but STATUS is a failure.
tests_run() {
	local status

	env -u MESH_BUILD -u TEST_AGAIN "$TREE/test.sh" functional >"$TREE/out" 2>&1
	status=$?
	((status == $1)) || fail "status $status, not $1"
	rm -f "$TREE"/runs.* "$TREE"/tests/functional/test_*.sh "$TREE/tests/expected_failures"
}

# unit_tests_run STATUS: scons is a script, from stdin.
unit_tests_run() {
	local status

	{
		echo '#!/usr/bin/env bash'
		echo "TREE=$TREE"
		echo 'echo >>$TREE/runs.unit; runs=$(wc -l <$TREE/runs.unit)'
		cat
	} >"$TREE/bin/scons"
	chmod +x "$TREE/bin/scons"
	mkdir -p "$TREE/build/unit"
	env -u TEST_AGAIN PATH="$TREE/bin:$PATH" "$TREE/test.sh" unit >"$TREE/out" 2>&1
	status=$?
	((status == $1)) || fail "status $status, not $1"
	rm -f "$TREE"/runs.*
}

# arm64_run STATUS SCRIPT...: each is a unit test; it knows how often it has run.
arm64_run() {
	local want=$1 script n=0 unit=$TREE/emulated/unit status

	mkdir -p "$unit"
	for script in "${@:2}"; do
		printf '#!/bin/bash\necho >>%s.%d; runs=$(wc -l <%s.%d)\n%s\n' "$TREE/runs" $n \
			"$TREE/runs" $n "$script" >"$unit/test_$n"
		chmod +x "$unit/test_$n"
		((++n))
	done
	MESH_BUILD=$TREE/emulated TEST_AGAIN=1 "$TREE/tests/arm64/run" internal units_run \
		>"$TREE/out" 2>&1
	status=$?
	((status == want)) || fail "status $status, not $want"
	rm -rf "$TREE"/runs.* "$unit"
}

test_fails_once() {
	stand_in good <<<'exit 0'
	stand_in once <<<'echo "this is run $runs"; ((runs > 1))'
	tests_run 0
	says '^FLAKY test_once: failed once'
	says '^  FLAKY test_once' # the summary
	says '^2 passed, 0 failed, 0 skipped$'
	grep -q 'this is run 1' "$TREE/build/functional/test_once.first.log" ||
		fail "the first log is lost"
}

test_fails_twice() {
	stand_in twice <<<'exit 1'
	tests_run 1
	silent FLAKY
	says '^  FAIL test_twice' # the summary
	says '^0 passed, 1 failed, 0 skipped$'
}

test_many_fail_once() {
	stand_in a <<<'((runs > 1))'
	stand_in b <<<'((runs > 1))'
	stand_in c <<<'((runs > 1))'
	stand_in d <<<'((runs > 1))'
	tests_run 1
	says '^3 passed, 1 failed, 0 skipped$'
}

test_hangs() {
	stand_in endless <<<'((runs > 1)) || exec tail -f /dev/null'
	TEST_TIMEOUT=1 tests_run 1
	silent FLAKY
	says 'no end after 1 s'
}

test_sanitizer_reports() {
	stand_in race <<<'echo "WARNING: ThreadSanitizer: data race"; ((runs > 1))'
	stand_in hidden <<-'END'
		mkdir -p build/functional/test_hidden.files
		echo 'x.c:1:2: runtime error: null pointer' >build/functional/test_hidden.files/log
		((runs > 1))
	END
	tests_run 1
	silent FLAKY
	says '^0 passed, 2 failed, 0 skipped$'
}

test_expected() {
	stand_in known <<<'echo "FAIL: as before"; exit 1'
	stand_in mended <<<'exit 0'
	stand_in good <<<'exit 0'
	printf 'test_%s: a known defect\n' known mended >"$TREE/tests/expected_failures"
	tests_run 0
	says '^1 skipped, fails as expected \([0-9]+ s\): a known defect: test_known$'
	says '^PASSES test_mended: take it off the list'
	says '^  PASSES test_mended' # the summary
	silent '^PASSES test_good|FLAKY'
	says '^2 passed, 0 failed, 1 skipped$'
}

# Listed, but something else than what is expected.
test_expected_else() {
	stand_in hangs <<<'exec tail -f /dev/null'
	stand_in reported <<<'echo "ERROR: AddressSanitizer: heap-use-after-free"; exit 1'
	stand_in corrupt <<<'echo "rank 1: wrong byte: channel 0"; exit 1'
	printf 'test_%s: a known defect\n' hangs reported corrupt >"$TREE/tests/expected_failures"
	TEST_TIMEOUT=1 tests_run 1
	says '^0 passed, 3 failed, 0 skipped$'
}

# Each reason once, with the tests.
test_long() {
	stand_in slow <<<'exit 0'
	stand_in slower <<<'exit 0'
	sed -i '1a # long: another one' "$TREE"/tests/functional/test_slow{,er}.sh
	stand_in quick <<<'exit 0'
	cp -r "$TREE/tests/functional" "$TREE/kept"
	tests_run 0
	says "^2 skipped, only './test.sh long' runs it: test_slow test_slower$"
	says '^1 passed, 0 failed, 2 skipped$'
	mv "$TREE"/kept/test_*.sh "$TREE/tests/functional/"
	TEST_LONG=1 tests_run 0
	says '^3 passed, 0 failed, 0 skipped$'
}

test_unit_tests() {
	unit_tests_run 0 <<-'END'
		echo "SKIP test_c: no reason"
		((runs > 1)) || { echo "PASS test_a"; echo "FAIL test_b (1)"; exit 2; }
		echo "PASS test_b"
	END
	says '^  FLAKY test_b'
	says '^2 passed, 0 failed, 1 skipped$'
	unit_tests_run 1 <<<'echo "FAIL test_b (1)"; exit 2'
	says '^0 passed, 1 failed, 0 skipped$'
	unit_tests_run 1 <<-'END'
		echo "ERROR: AddressSanitizer: heap-use-after-free"
		((runs > 1)) || { echo "FAIL test_b (1)"; exit 2; }
		echo "PASS test_b"
	END
	silent FLAKY
	unit_tests_run 1 <<-'END'
		((runs > 1)) || { echo "x.c:1: error: something else"; exit 2; }
		echo "PASS test_a"
	END
}

test_arm64() {
	arm64_run 0 'exit 0' 'echo why; exit 77' '((runs > 1))'
	says '^PASS test_0'
	says '^SKIP test_1: why'
	says '^FLAKY test_2: failed once'
	silent '^FAIL'
	arm64_run 1 'exit 0' '((runs > 1))' '((runs > 1))'
	says '^FAIL test_2 '
	arm64_run 1 'exit 1'
	says '^FAIL test_0 '
	silent FLAKY
}

for t in fails_once fails_twice many_fail_once hangs sanitizer_reports expected expected_else \
	long unit_tests arm64; do
	"test_$t"
	echo "  ok $t"
done
