#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_ahead.sh - jobs that test.sh runs ahead are stopped while a test is alone, and only then.
#
# A tree of stand-ins around the real test.sh, tests/ahead.sh and tests/functional/run: a job ahead,
# one test that may share the machine and one that may not. They note the job's state.
# shellcheck disable=SC2016 # expanded where it is run
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TREE=$(mktemp -d)
TESTS="" # test.sh's process, and its group
# Nothing ever writes to this descriptor: reading it with a limit is a pause.
exec {NEVER}<> <(:)

fail() { echo "FAIL: $*" >&2; [[ ! -e $TREE/out ]] || tail -n 30 "$TREE/out" >&2; exit 1; }

# wait_for COND: until the shell command COND holds, or for a minute.
wait_for() {
	local deadline=$((SECONDS + 60))

	until eval "$1"; do
		((SECONDS <= deadline)) || return 1
		read -rt 0.05 -u "$NEVER" || true
	done
}

# state_of PROCESS: R or S, T where it is stopped; "" if it has ended, also as a zombie.
state_of() { ps -o stat= -p "$1" 2>/dev/null | cut -c1 | tr -d Z; }
job_state() { state_of "$(cat "$TREE/job")"; }

cleanup() {
	trap - EXIT
	[[ ! $TESTS ]] || kill -KILL -- "-$TESTS" 2>/dev/null
	[[ ! -e $TREE/job ]] || kill -KILL -- "-$(cat "$TREE/job")" 2>/dev/null
	rm -rf "$TREE"
}
trap cleanup EXIT

# script FILE: its lines come from stdin. W waits for a condition; state notes the job's.
script() {
	mkdir -p "$(dirname "$TREE/$1")"
	{
		echo '#!/usr/bin/env bash'
		grep -m1 '^# alone' <<<"${2:-}"
		echo "TREE=$TREE"
		echo 'exec {never}<> <(:)'
		echo 'W() { until eval "$1"; do read -rt 0.05 -u "$never"; done; }'
		echo 'state() { ps -o stat= -p "$(cat $TREE/job)" | cut -c1; }'
		cat
	} >"$TREE/$1"
	chmod +x "$TREE/$1"
}

mkdir -p "$TREE/tests/functional" "$TREE/tests/vm"
cp "$TOP/test.sh" "$TREE/"
cp "$TOP/tests/ahead.sh" "$TOP/tests/again.sh" "$TOP/tests/jobs.sh" \
	"$TOP/tests/kallsyms.sh" "$TREE/tests/"
cp "$TOP/tests/functional/run" "$TREE/tests/functional/"
script bin/scons <<<'exit 0'
# The job: a group of two processes, which ends when it may.
script tests/vm/build <<-'END'
	echo $$ >$TREE/job.new
	mv $TREE/job.new $TREE/job
	W '[[ -e $TREE/job_may_end ]]' | W '[[ -e $TREE/job_may_end ]]'
	touch $TREE/job_ended
END
script tests/vm/run <<<'[[ -e $TREE/job_ended ]]'
script tests/functional/test_shared.sh <<-'END'
	W '[[ -e $TREE/job ]]'
	state >$TREE/shared
END
script tests/functional/test_alone.sh '# alone: measures' <<-'END'
	job=$(cat $TREE/job)
	running() { ps -eo pgid=,stat= | awk -v job="$job" '$1 == job && $2 !~ /^[TZ]/'; }
	W '[[ ! $(running) ]]' # or this never ends
	state >$TREE/alone
	W '[[ ! -e $TREE/stay ]]'
	touch $TREE/job_may_end
END

# start: test.sh as a child in a group of its own, as a terminal's Ctrl-C would meet it.
start() {
	rm -f "$TREE"/{job,job_may_end,job_ended,shared,alone,out}
	set -m
	PATH=$TREE/bin:$PATH TEST_TIMEOUT=60 "$TREE/test.sh" functional vm >"$TREE/out" 2>&1 &
	set +m
	TESTS=$!
}

test_alone_is_alone() {
	local state

	start
	wait "$TESTS" || fail "test.sh failed"
	state=$(cat "$TREE/shared")
	[[ $state == [SR] ]] || fail "the job is '$state' beside other tests"
	state=$(cat "$TREE/alone")
	[[ $state == T ]] || fail "the job is '$state' beside a test alone"
	grep -q '^3 passed, 0 failed, 0 skipped$' "$TREE/out" || fail "not everything ran"
}

# interrupted_by SIGNAL WHOM: in the middle of a test alone; WHOM is 'group' or 'runner'.
interrupted_by() {
	local runner

	touch "$TREE/stay"
	start
	wait_for '[[ -e $TREE/alone ]]' || fail "the test alone does not begin"
	[[ $(job_state) == T ]] || fail "the job is '$(job_state)'"
	if [[ $2 == group ]]; then
		kill "-$1" -- "-$TESTS"
	else
		runner=$(pgrep -P "$TESTS" -f tests/functional/run)
		kill "-$1" "$runner"
	fi
}

test_interrupt_ends_the_job() {
	local signal

	for signal in INT TERM; do
		interrupted_by $signal group
		wait "$TESTS" && fail "test.sh passes though it was interrupted"
		wait_for '[[ ! $(job_state) ]]' || fail "SIG$signal leaves the job '$(job_state)'"
	done
}

# A runner that gets SIGTERM resumes the job; after a kill the step that needs it does.
test_runner_ends() {
	interrupted_by TERM runner
	wait_for '[[ $(job_state) == [SR] ]]' || fail "after SIGTERM the job is '$(job_state)'"
	touch "$TREE/job_may_end"
	wait "$TESTS" && fail "test.sh passes though its tests were interrupted"
	interrupted_by KILL runner
	touch "$TREE/job_may_end"
	wait "$TESTS" && fail "test.sh passes though its tests were killed"
	[[ -e $TREE/job_ended ]] || fail "the job of a killed run never ended"
}

for t in alone_is_alone interrupt_ends_the_job runner_ends; do
	"test_$t"
	echo "  ok $t"
done
