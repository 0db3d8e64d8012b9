#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_close_failed.sh - connections that have failed, because the process behind a relay was killed
# or is stopped, are closed in the middle of messages. The healthy connections with the relay's
# process itself go on, and those with another process behind the relay.
#
#	a ---- b ---- c		b relays between the two, and has a connection each way with a;
#	       |		or `fi_mesh serve --relay` is all that runs on b, and d has
#	       d		these connections
# seconds: 35
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

FAILED=4
FAULTS_ENV+=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_CONNECT_TIMEOUT=60"
	"NCCL_MESH_ACCEPT_TIMEOUT=60" "NCCL_MESH_RECOVERY_TIMEOUT=60")

# The node of the process "healthy".
HEALTHY=b

# healthy: the lines for transfers with that process, both ways, over comms 10 and 11.
healthy() {
	echo "transfer 10 1M 20 $1"
	echo "transfer 11 1M 20 $(($1 + 1))"
}

# failed_open connects|accepts: the comms between a and c, each with a registered buffer. c has more
# to receive than the relay's memory holds, and a has posted what never comes.
failed_open() {
	local i

	for ((i = 0; i < FAILED; i++)); do
		printf '%s\n' "$1 $i $FAULTS/handle.failed$i 8M" "transfer $i 64K 4 $i"
	done
	for ((i = 0; i < FAILED; i++)); do echo "post $i $i 0 8M"; done
}

# play_all RESULT: RESULT is the mark of the requests of a on the comms with c.
play_all() {
	local i

	rm -f "$FAULTS"/{handle.*,gone,closed,ready,posted}
	play "$HEALTHY" healthy <<-END
		limit 300000
		listen 10 $FAULTS/handle.to_b
		await $FAULTS/handle.from_b
		accept 10 10
		connect 11 $FAULTS/handle.from_b
		room 10 8M
		room 11 8M
		$(healthy 10)
		await $FAULTS/closed
		$(healthy 20)
		close 10
		close 11
	END
	play c end < <(
		printf '%s\n' "limit 300000" "init 0"
		failed_open "$2"
		printf '%s\n' "touch $FAULTS/ready" "await $FAULTS/never"
	)
	play a survivor < <(
		cat <<-END
			limit 300000
			init 0
			listen 11 $FAULTS/handle.from_b
			connects 10 $FAULTS/handle.to_b
			accept 11 11
			room 10 8M
			room 11 8M
			$(healthy 10)
		END
		failed_open "$3"
		printf '%s\n' "touch $FAULTS/posted" "await $FAULTS/gone"
		[[ $1 == stopped ]] || for ((i = 0; i < FAILED; i++)); do echo "! test $i"; done
		for ((i = 0; i < FAILED; i++)); do printf '%s\n' "dereg $i" "close $i"; done
		cat <<-END
			touch $FAULTS/closed
			$(healthy 20)
			close 10
			close 11
			finalize 0
		END
	)
	arrives ready posted
}

# test_case killed|stopped SIGNAL, receiving|sending at a
test_case() {
	local case="$1, $2 at a"

	if [[ $2 == receiving ]]; then
		play_all "$1" connects accepts
	else
		play_all "$1" accepts connects
	fi
	signal end "$([[ $1 == killed ]] && echo KILL || echo STOP)"
	touch "$FAULTS/gone"
	ended survivor
	ended healthy
	[[ $1 == killed ]] || signal end KILL
	ended end 137
	unsaid survivor WARN "lost node [bd]|cut the connections with node b"
	unsaid healthy WARN "node a cut its connections|lost node a"
	note "$case: the connections with $HEALTHY go on"
}

faults_init
mesh_up line 3
for what in killed stopped; do
	for side in receiving sending; do
		test_case $what $side
	done
done
mesh_node d
mesh_link b bd 10.77.9.1/24 d db 10.77.9.2/24
HEALTHY=d
serve b -- "${FAULTS_ENV[@]}" --relay
for side in receiving sending; do
	test_case killed $side
done
end_serving
