#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_idle_memory.sh - each end of an idle comm with one path costs at most 5 KiB of resident
# memory, and at most 24 KiB more once a message of 8 B has gone through it: the copies of small
# messages touch no page before they need it. Measured over 512 comms between two processes.
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

FIRST=16 # comms that are made before: what the process needs once
MORE=512
BOUND=5120 # bytes, of which 640 are room for two paths that join late
BOUND_USED=24576
OTHER=65536 # of what the process touches meanwhile for anything else

# side COMMAND OBJECT MINE OTHER: COMMAND makes each comm from OBJECT.
side() {
	local i

	echo "buffer 0 64"
	for ((i = 0; i < FIRST; i++)); do echo "$1 $i $2"; done
	echo "memory before"
	for (( ; i < FIRST + MORE; i++)); do echo "$1 $i $2"; done
	echo "memory idle"
	for ((i = FIRST; i < FIRST + MORE; i++)); do echo "reg $i $i 0"; done
	echo "memory registered"
	for ((i = FIRST; i < FIRST + MORE; i++)); do echo "transfer $i 8 1 $i"; done
	echo "memory used"
	# The peer counts before this end closes.
	printf '%s\n' "touch $FAULTS/$3" "await $FAULTS/$4"
	for ((i = FIRST; i < FIRST + MORE; i++)); do echo "dereg $i"; done
	for ((i = 0; i < FIRST + MORE; i++)); do echo "close $i"; done
	echo "finalize 0"
}

faults_init
[[ $MESH_BUILD != *sanitize* ]] || skip "a sanitizer needs memory of its own"
mesh_up triangle
play a receiver < <(
	printf '%s\n' "init 0" "listen 0 $FAULTS/handle" "await $FAULTS/handle.met"
	side accept 0 received sent
)
play b sender < <(
	printf '%s\n' "init 0" "await $FAULTS/handle" "touch $FAULTS/handle.met"
	side connect "$FAULTS/handle" sent received
)
ended receiver
ended sender

# grows NAME FROM TO BOUND: the resident memory of NAME, for each comm, between these two readings.
grows() {
	local from to

	from=$(sed -n "s/^note memory $2 = //p" "$FAULTS/$1.log")
	to=$(sed -n "s/^note memory $3 = //p" "$FAULTS/$1.log")
	note "$1: $(((to - from) / MORE)) bytes for each of $MORE comms, $3"
	((to - from <= $4 * MORE + OTHER)) || faults_show "$1: more than $4 bytes"
}

for name in sender receiver; do
	grows $name before idle $BOUND
	grows $name registered used $BOUND_USED
done
