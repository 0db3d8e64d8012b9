# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# again.sh - says which failed tests are run once more, by themselves. To be sourced.
#
# TEST_AGAIN: so many tests of one run may fail once (default 0; test.sh: 3). A machine that others
# share now and then stops a process for seconds, and of hundreds of tests one then misses a bound.
# A test that fails beside others and passes by itself is printed as FLAKY and its first log is
# kept: it is a defect to be mended. What hangs or a sanitizer reports is never run again.

AGAIN_REPORTS='(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:'
AGAIN=0 # tests that were run once more

# again_may PATH...: true if a failed test with these logs and folders may be run once more.
again_may() {
	((AGAIN < ${TEST_AGAIN:-0})) || return 1
	! grep -rqsE "$AGAIN_REPORTS" "$@" || return 1
	((++AGAIN))
}

# again_print NAME LOG: reports a test that has passed now, and failed before with this log.
again_print() { echo "FLAKY $1: failed once, then passed by itself; the first log is $2"; }
