# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# jobs.sh - runs test scripts side by side, each with a log of its own. To be sourced behind
# again.sh.
#
# The caller sets LOGS, the folder for <name>.log, and LIMIT, the seconds that one test may take,
# and has a function test_run FILE, which runs one test in a process of its own, prints to the log,
# and ends when it is sent SIGTERM. Exit status 77 is a skip.
#
# What a test says of itself in the comment at its head:
#   # alone: WHY     nothing else may run beside it, nor the job that test.sh runs ahead, which
#                    holds the lock MESH_AHEAD; such tests come last
#   # seconds: N     about what it takes on two cores; the longest start first (default 10)
#   # long: WHY      runs only if it is named, or with TEST_LONG=1; WHY says what checks the same
#                    each time
#
# TEST_SKIP        words: tests that are not to run, said in the output
# TEST_LONG        1: those that are marked as long run, too; the caller sets it if tests are named
#
# tests/expected_failures lists tests of defects that are known: a failure of one is reported as a
# skip, with its reason. If one passes, the output says so, and the run does not fail: a defect that
# does not show each time is no reason to hold up others. A hang, a report of a sanitizer and wrong
# bytes are failures all the same.

EXPECTED_FAILURES=tests/expected_failures
EXPECTED_NEVER="$AGAIN_REPORTS|wrong byte"
declare -A NAME=() STARTED=() # of each test that runs, by its process id
declare -A FIRST_LOG=()           # of each test that has failed once, by its name
passed=0 failed=0 skipped=0

# tests_select FOLDER [NAME...]: prints the files of the tests named: test_x, x or a path; all if
# none is named.
tests_select() {
	local folder=$1 name file

	shift
	if (($# == 0)); then
		ls "$folder"/test_*.sh
		return
	fi
	for file in "$@"; do
		if [[ $file != */* || ! -e $file ]]; then
			name=$(basename "$file" .sh)
			file=$folder/test_${name#test_}.sh
		fi
		[[ -e $file ]] || { echo "there is no test $file" >&2; return 1; }
		echo "$file"
	done
}

# mark FILE WORD: what stands behind '# WORD:' in the comment at the file's head.
mark() { sed -n "/^#/!q; s/^# $2: //p" "$1"; }

# longest_first FILE...
longest_first() {
	local file seconds

	for file in "$@"; do
		seconds=$(mark "$file" seconds)
		echo "${seconds:-10} $file"
	done | sort -u -k1,1nr -k2 | cut -d' ' -f2
}

# expected_reason NAME: why this test is expected to fail; status 1 if it is not.
expected_reason() {
	sed -n "s/^$1: //p" "$EXPECTED_FAILURES" 2>/dev/null | grep .
}

# expected_may NAME SECONDS LOG: whether this failure is the one that is expected.
expected_may() {
	expected_reason "$1" >/dev/null && (($2 < LIMIT)) &&
		! grep -rqsE "$EXPECTED_NEVER" "$3" "$LOGS/$1" "$LOGS/$1.files"
}

test_start() {
	local name

	name=$(basename "$1" .sh)
	if [[ " ${TEST_SKIP:-} " == *" $name "* ]]; then
		echo "SKIP $name: named in TEST_SKIP"
		((skipped++))
		return
	fi
	if [[ ! ${TEST_LONG:-} && $(mark "$1" long) ]]; then
		echo "SKIP $name: only './test.sh long' runs it"
		((skipped++))
		return
	fi
	test_run "$1" >"$LOGS/$name.log" 2>&1 </dev/null &
	NAME[$!]=$name
	STARTED[$!]=$SECONDS
}

# one_finish: waits until one of the tests ends, and reports on it.
one_finish() {
	local pid status name log took

	wait -n -p pid "${!NAME[@]}"
	status=$?
	name=${NAME[$pid]}
	log=$LOGS/$name.log
	took=$((SECONDS - STARTED[$pid]))
	unset "NAME[$pid]" "STARTED[$pid]"
	case $status in
	0)
		echo "PASS $name ($took s)"
		((passed++))
		! expected_reason "$name" >/dev/null ||
			echo "PASSES $name: take it off the list $EXPECTED_FAILURES"
		[[ ! ${FIRST_LOG[$name]:-} ]] || again_print "$name" "${FIRST_LOG[$name]}"
		;;
	77)
		echo "SKIP $name: $(grep '^SKIP: ' "$log" | tail -1 | sed 's/^SKIP: //')"
		((skipped++))
		;;
	*)
		if expected_may "$name" $took "$log"; then
			echo "SKIP $name: fails as expected ($took s): $(expected_reason "$name")"
			((skipped++))
			return
		fi
		tail -n "${TEST_LOG_LINES:-60}" "$log"
		((took < LIMIT)) || echo "no end after $LIMIT s"
		failure_report "$name" $took "$status" "$log"
		;;
	esac
}

# failure_report NAME SECONDS STATUS LOG: the test has failed, for good or for the first time.
failure_report() {
	local how="status $3, $2 s, log"

	if [[ ! ${FIRST_LOG[$1]:-} ]] && (($2 < LIMIT)) &&
		again_may "$4" "$LOGS/$1" "$LOGS/$1.files"; then
		FIRST_LOG[$1]=$LOGS/$1.first.log
		mv "$4" "${FIRST_LOG[$1]}"
		echo "failed once: $1 ($how ${FIRST_LOG[$1]})"
		return
	fi
	echo "FAIL $1 ($how $4)"
	((failed++))
}

# tests_run JOBS FILE...: at most so many at a time.
tests_run() {
	local jobs=$1 file

	shift
	for file in "$@"; do
		while ((${#NAME[@]} >= jobs)); do one_finish; done
		test_start "$file"
	done
	while ((${#NAME[@]})); do one_finish; done
}

# The tests do not get the terminal's Ctrl-C, as they run in the background: they are sent SIGTERM,
# and clean up.
interrupted() {
	trap '' INT TERM
	((${#NAME[@]} == 0)) || kill -TERM "${!NAME[@]}" 2>/dev/null
	wait
	exit 130
}

# tests_all JOBS FILE...: so many at a time; then one after the other those that want to be alone,
# and those that have failed once. Prints the counts; status 1 if anything failed.
tests_all() {
	local jobs=$1 file name files alone=() shared=()

	mkdir -p "$LOGS"
	mapfile -t files < <(longest_first "${@:2}")
	for file in "${files[@]}"; do
		if [[ $(mark "$file" alone) ]]; then alone+=("$file"); else shared+=("$file"); fi
	done
	trap interrupted INT TERM
	tests_run "$jobs" "${shared[@]}"
	if ((${#alone[@]} + ${#FIRST_LOG[@]})); then
		[[ ! ${MESH_AHEAD:-} ]] || flock "$MESH_AHEAD" true
		tests_run 1 "${alone[@]}"
		files=()
		for name in "${!FIRST_LOG[@]}"; do
			for file in "${@:2}"; do
				[[ $(basename "$file" .sh) != "$name" ]] || files+=("$file")
			done
		done
		tests_run 1 "${files[@]}"
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	((failed == 0))
}
