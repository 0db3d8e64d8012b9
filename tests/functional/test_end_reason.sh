#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_end_reason.sh - one process aborts its connections. If the other one still uses them, one
# WARN has the reason before a call returns the error, however many connections have ended: NCCL
# keeps the last WARN for ncclGetLastError(). Else there is no WARN.
# seconds: 5
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

COMMS=20

# each LINE...: the lines for each comm, whose number stands for @.
each() {
	local i

	for ((i = 1; i <= COMMS; i++)); do printf '%s\n' "${@//@/$i}"; done
}

# ends accepts|connects WORDS: plays both. The other process does $BEFORE and, when it has said
# WORDS about each comm, $AFTER.
ends() {
	local way=$1 back=accepts

	[[ $way != accepts ]] || back=connects
	rm -f "$FAULTS"/{handle.*,posted,go}
	play a first <<-END
		$(each "$back @ $FAULTS/handle.@ 256K" "transfer @ 64K 4 @")
		await $FAULTS/posted
		drop $(seq -s ' ' $COMMS)
	END
	play b other <<-END
		$(each "$way @ $FAULTS/handle.@ 256K" "transfer @ 64K 4 @")
		$(each "${BEFORE[@]}")
		touch $FAULTS/posted
		await $FAULTS/go
		$(each "${AFTER[@]}")
		drop $(seq -s ' ' $COMMS)
	END
	wait_for "((\$(grep -c '$2' $FAULTS/other.log) == COMMS))" $((30 * FAULTS_SLOW)) ||
		faults_show "the end of the connections is not noticed"
	# Before NCCL looks, if it has posted.
	[[ ! ${BEFORE[*]} ]] || said other WARN "$2"
	touch "$FAULTS/go"
	ended first
	ended other
}

# warned WORDS: the other process has one such WARN, before the first error.
warned() {
	said other WARN "$1, or failed"
	(($(grep -c '^WARN' "$FAULTS/other.log") == 1)) || faults_show "more than one WARN"
	(($(grep -c "$1, or failed" "$FAULTS/other.log") == COMMS)) ||
		faults_show "not all of the others are INFO"
	(($(grep -n '^WARN' "$FAULTS/other.log" | cut -d: -f1) < \
		$(grep -n '^ok test: result' "$FAULTS/other.log" | head -1 | cut -d: -f1))) ||
		faults_show "the reason comes after the error"
	note "$(grep '^WARN' "$FAULTS/other.log")"
}

faults_init
mesh_up triangle

SENDER="the sender closed the connection" RECEIVER="the receiver closed the connection"
BEFORE=() AFTER=()
ends accepts "$SENDER"
unsaid first WARN .
unsaid other WARN .
ends connects "$RECEIVER"
unsaid first WARN .
unsaid other WARN .

AFTER=("post @ @ 0 64K" "! test @")
ends accepts "$SENDER"
warned "receiving from node a over ba: $SENDER"
ends connects "$RECEIVER"
warned "sending to node a over ba: $RECEIVER"

BEFORE=("post @ @ 0 64K") AFTER=("! test @")
ends accepts "$SENDER"
warned "receiving from node a over ba: $SENDER"
