#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_end_reason.sh - one process aborts its connections. The other one has posted nothing then: if
# it posts later, each call fails, and one WARN before it has the reason; else there is no WARN.
# seconds: 5
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# ends [LINE...]: plays both; LINEs are what the other process does after the abort.
ends() {
	rm -f "$FAULTS"/{handle.*,go}
	play a first <<-END
		$(for i in 1 2 3; do
			printf '%s\n' "connects $i $FAULTS/handle.$i 1M" "transfer $i 64K 4 $i"
		done)
		drop 1 2 3
	END
	play b other <<-END
		$(for i in 1 2 3; do
			printf '%s\n' "accepts $i $FAULTS/handle.$i 1M" "transfer $i 64K 4 $i"
		done)
		await $FAULTS/go
		$(printf '%s\n' "$@")
		drop 1 2 3
	END
	wait_for "((\$(grep -c 'the sender closed the connection' $FAULTS/other.log) == 3))" \
		$((30 * FAULTS_SLOW)) || faults_show "the end of the connections is not noticed"
	touch "$FAULTS/go"
	ended first
	ended other
}

faults_init
mesh_up triangle

ends
unsaid first WARN .
unsaid other WARN .

posts=()
for i in 1 2 3; do posts+=("post $i $i 0 64K" "! test $i"); done
ends "${posts[@]}"
said other WARN 'receiving from node a over ba: the sender closed the connection, or failed'
(($(grep -c '^WARN' "$FAULTS/other.log") == 1)) || faults_show "more than one WARN"
(($(grep -n '^WARN' "$FAULTS/other.log" | cut -d: -f1) < \
	$(grep -n '^ok test: result' "$FAULTS/other.log" | head -1 | cut -d: -f1))) ||
	faults_show "the reason comes after the error"
note "$(grep '^WARN' "$FAULTS/other.log")"
