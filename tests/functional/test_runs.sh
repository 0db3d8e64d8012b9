#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_runs.sh - what test.sh does around tests: one that fails once is run again by itself, and
# everybody can see it; one that is listed as failing does not fail a run; and a test that is alone
# waits for the job that runs ahead.
#
# A tree of stand-ins around the real test.sh, tests/functional/run and tests/arm64/run.
# seconds: 10
# shellcheck disable=SC2016 # expanded where it is run
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TREE=$(mktemp -d)
TESTS="" # the process of a test.sh in the background, and its group
unset MESH_BUILD TEST_AGAIN TEST_LONG TEST_SKIP
# Nothing ever writes to this descriptor: reading it with a limit is a pause.
exec {NEVER}<> <(:)

fail() { echo "FAIL: $*" >&2; [[ ! -e $TREE/out ]] || sed 's/^/  /' "$TREE/out" >&2; exit 1; }
says() { grep -qE "$1" "$TREE/out" || fail "it does not print '$1'"; }
silent() { ! grep -qE "$1" "$TREE/out" || fail "it prints '$1'"; }

# wait_for COND: until the shell command COND holds, or for a minute.
wait_for() {
	local deadline=$((SECONDS + 60))

	until eval "$1"; do
		((SECONDS <= deadline)) || return 1
		read -rt 0.05 -u "$NEVER" || true
	done
}

cleanup() {
	trap - EXIT
	[[ ! $TESTS ]] || kill -KILL -- "-$TESTS" 2>/dev/null
	rm -rf "$TREE"
}
trap cleanup EXIT

# script FILE [HEAD]: its lines come from stdin. It knows TREE and how often it has run; W waits for
# a condition.
script() {
	mkdir -p "$(dirname "$TREE/$1")"
	{
		echo '#!/usr/bin/env bash'
		echo "${2:-}"
		echo "TREE=$TREE"
		echo 'count=$TREE/runs.${0##*/}; echo >>"$count"; runs=$(wc -l <"$count")'
		echo 'exec {never}<> <(:)'
		echo 'W() { until eval "$1"; do read -rt 0.05 -u "$never"; done; }'
		cat
	} >"$TREE/$1"
	chmod +x "$TREE/$1"
}

# stand_in NAME: a test.
stand_in() { script "tests/functional/test_$1.sh"; }

# ends_with STATUS COMMAND...: all but STATUS is a failure.
ends_with() {
	local status

	"${@:2}" >"$TREE/out" 2>&1
	status=$?
	((status == $1)) || fail "status $status, not $1"
	rm -f "$TREE"/runs.*
}

# tests_run STATUS: runs them all.
tests_run() {
	ends_with "$1" "$TREE/test.sh" functional
	rm -f "$TREE"/tests/functional/test_*.sh "$TREE/tests/expected_failures"
}

# unit_tests_run STATUS: scons is a script, from stdin.
unit_tests_run() {
	script bin/scons
	mkdir -p "$TREE/build/unit"
	ends_with "$1" env PATH="$TREE/bin:$PATH" "$TREE/test.sh" unit
}

# arm64_run STATUS SCRIPT...: each is a unit test.
arm64_run() {
	local body n=0

	for body in "${@:2}"; do script "emulated/unit/test_$((n++))" <<<"$body"; done
	ends_with "$1" env MESH_BUILD="$TREE/emulated" TEST_AGAIN=1 "$TREE/tests/arm64/run" \
		internal units_run
	rm -r "$TREE/emulated/unit"
}

mkdir -p "$TREE/tests/functional"
cp "$TOP/test.sh" "$TREE/"
cp -r "$TOP"/tests/{again.sh,jobs.sh,kallsyms.sh,debian.sh,arm64} "$TREE/tests/"
cp "$TOP/tests/functional/run" "$TREE/tests/functional/"

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

# job_make: a job that runs ahead, of two processes, and ends when the test that may share the
# machine has ended; one that may not notes whether the job has.
job_make() {
	script bin/scons <<<'exit 0'
	script tests/vm/build <<-'END'
		echo $$ >$TREE/job
		W '[[ -e $TREE/shared ]]' | W '[[ -e $TREE/shared ]]'
		read -rt 1 -u "$never"
		touch $TREE/job_ended
	END
	script tests/vm/run <<<'[[ -e $TREE/job_ended ]]'
	script tests/functional/test_shared.sh <<-'END'
		W '[[ -e $TREE/job && ! -e $TREE/stay ]]'
		touch $TREE/shared
	END
	script tests/functional/test_alone.sh '# alone: measures' <<<'[[ -e $TREE/job_ended ]]'
}

test_alone_is_alone() {
	PATH=$TREE/bin:$PATH ends_with 0 "$TREE/test.sh" functional vm
	says '^3 passed, 0 failed, 0 skipped$'
	rm "$TREE"/{job,shared,runs.test_shared.sh}
}

# As a terminal's Ctrl-C, to the whole group of test.sh, of which the job is not one.
test_interrupt_ends_the_job() {
	touch "$TREE/stay"
	set -m
	PATH=$TREE/bin:$PATH "$TREE/test.sh" functional vm >"$TREE/out" 2>&1 &
	set +m
	TESTS=$!
	# A signal between fork and exec of what runs the tests is lost.
	wait_for '[[ -s $TREE/job && -s $TREE/runs.test_shared.sh ]]' ||
		fail "the job or the test does not begin"
	kill -INT -- "-$TESTS"
	wait "$TESTS" && fail "test.sh passes though it was interrupted"
	wait_for '! kill -0 "$(cat "$TREE/job")" 2>/dev/null' || fail "the job is left"
}

for t in fails_once fails_twice many_fail_once hangs sanitizer_reports expected expected_else \
	long unit_tests arm64; do
	"test_$t"
	echo "  ok $t"
done
job_make
for t in alone_is_alone interrupt_ends_the_job; do
	"test_$t"
	echo "  ok $t"
done
