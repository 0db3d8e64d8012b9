#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_fence_descriptors.sh - the only cable is away for a while in mid-message, and neither process
# has a file descriptor left: both cut the connections that were lost all the same. With descriptors
# again the connection goes on, and every byte is right; if the cable stays away, it fails in words.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

FAULTS_ENV+=("NCCL_MESH_NEIGHBOURS=off" "NCCL_MESH_RECOVERY_TIMEOUT=60")

# plays ROLE [!]: streams without descriptors, until $FAULTS/back gives them back; "!": and fails.
plays() {
	cat <<-END
		init 0
		$(meet "$1" 8M)
		exhaust 0
		thread 1 ${2-} stream 0 8M $FAULTS/stop 1
		touch $FAULTS/exhausted.$1
		await $FAULTS/back
		release
		join 1
		drop 0
		finalize 0
	END
}

# cut_off ROLE: it has cut what it lost.
cut_off() {
	wait_for "grep -Eq 'cut [1-9][0-9]* connections? with' $FAULTS/$1.log" \
		$((30 * FAULTS_SLOW)) || faults_show "$1 has not cut its connections"
}

# loses [!]: both stream, and lose the cable.
loses() {
	rm -f "$FAULTS"/{handle,handle.met,back,stop,exhausted.*}
	play a connect < <(plays connect "${1-}")
	play b listen < <(plays listen "${1-}")
	arrives exhausted.connect exhausted.listen
	mesh_carrier a ab down
	cut_off connect
	cut_off listen
}

ends() {
	ended connect
	ended listen
	unsaid connect WARN 'cannot cut|late message'
	unsaid listen WARN 'cannot cut|late message'
}

faults_init
mesh_up triangle
mesh_shape a ab 200mbit
mesh_shape b ba 200mbit

loses
touch "$FAULTS/back"
mesh_carrier a ab up
for role in connect listen; do
	wait_for "grep -q 'its messages go over this path, too' $FAULTS/$role.log" \
		$((30 * FAULTS_SLOW)) || faults_show "$role does not get its link back"
done
touch "$FAULTS/stop"
ends
note "with descriptors again: $(grep -h 'note stream' "$FAULTS/listen.log")"

FAULTS_ENV+=("NCCL_MESH_RECOVERY_TIMEOUT=5")
loses '!'
for role in connect listen; do
	wait_for "grep -q 'stream: result' $FAULTS/$role.log" $((60 * FAULTS_SLOW)) ||
		faults_show "$role has not failed"
	said $role WARN 'has not come back over any path'
done
mesh_carrier a ab up
touch "$FAULTS/back"
ends
note "the cable stays away: $(grep -hE '^WARN' "$FAULTS/listen.log" | tail -1 | cut -c1-200)"
