# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# ahead.sh - stops the jobs that run ahead of their step while something is measured. To be sourced.
#
# MESH_AHEAD: the process groups of those jobs, by number; test.sh exports it. The lowest priority
# is not enough: a process that calls sched_yield() hands the core to a job at nice 19 all the same.

# ahead_signal SIGNAL: to the jobs that live. Only a group whose leader is in our session is one:
# the number of a job that has ended may be another's by now.
ahead_signal() {
	local group pgid sid session

	read -r session < <(ps -o sid= -p $$)
	for group in ${MESH_AHEAD:-}; do
		read -r pgid sid < <(ps -o pgid=,sid= -p "$group") || continue
		[[ $pgid == "$group" && $sid == "$session" ]] || continue
		kill "-$1" -- "-$group" 2>/dev/null
	done
	return 0
}

# ahead_suspend and ahead_resume: the caller that suspends also resumes in an EXIT trap.
ahead_suspend() { ahead_signal STOP; }
ahead_resume() { ahead_signal CONT; }
