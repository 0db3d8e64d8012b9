#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_other_comms.sh - while messages of 4 MiB are sent on one comm and of 8 bytes on another, no
# call of the plugin copies more than the window of tcp, and none takes longer than 1 ms of the
# processor: a comm waits for one call of another comm at most.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

ROUNDS=5
COPIED=2200 # KiB; the window, MESH_PACE_WINDOW_MIN, and small messages
BOUND=1000  # us
# Percent of a core. On a busy machine interrupts and a shared cache cost the processor's time, too.
QUIET=80

# side connect|listen: both comms, and the rounds.
side() {
	local i

	cat <<-END
		init 0
		$(meet "$1" 32M)
	END
	[[ $1 != listen ]] || echo "accepts 1 $FAULTS/handle.small 64K"
	[[ $1 == listen ]] || echo "connects 1 $FAULTS/handle.small 64K"
	echo "transfer 0 4M 8 1"
	echo "transfer 1 8 8 2"
	echo "longest"
	for ((i = 0; i < ROUNDS; i++)); do
		cat <<-END
			thread 1 transfer 0 4M 40 $((10 + i))
			transfer 1 8 2000 $((20 + i))
			join 1
			longest
		END
	done
	printf '%s\n' "close 0" "close 1" "finalize 0"
}

# rounds NAME WORD: a figure of each round, from the least to the most.
rounds() {
	awk -v n="$2" '/^note longest/ {print $n}' "$FAULTS/$1.log" | tail -n +2 | sort -n
}

faults_init
mesh_up triangle
before=$(core_share)
play a receiver < <(side listen)
play b sender < <(side connect)
ended receiver
ended sender
after=$(core_share)
for name in sender receiver; do
	us=$(rounds $name 4 | sed -n $((ROUNDS / 2 + 1))p)
	sent=$(rounds $name 6 | tail -1) received=$(rounds $name 9 | tail -1)
	note "$name, in one call: $us us (median), $sent KiB sent and $received KiB received (most)"
	((sent <= COPIED && received <= COPIED)) || faults_show "$name: more than $COPIED KiB"
	((us <= BOUND * FAULTS_SLOW || before < QUIET || after < QUIET)) ||
		faults_show "$name: a call took $us us of the processor"
done
(($(rounds sender 6 | tail -1) > 500)) || faults_show "the bytes are not counted"
