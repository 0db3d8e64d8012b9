# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# transfer.sh - one comm between two nodes that carries messages, every byte checked. To be sourced.

# shellcheck source=tests/functional/faults.sh
. "$(dirname "${BASH_SOURCE[0]}")/../functional/faults.sh"
# shellcheck source=tests/vm/rdma.sh
. "$(dirname "${BASH_SOURCE[0]}")/rdma.sh"

# How long one command may take, in ms: emulated, on a busy machine.
TRANSFER_MS=120000

# For transfers in which nothing is to fail: a peer that is only slow is not lost.
# shellcheck disable=SC2034 # for the tests
TRANSFER_PATIENT=(
	NCCL_MESH_CONNECT_TIMEOUT=100 NCCL_MESH_ACCEPT_TIMEOUT=100 NCCL_MESH_DEAD_PEER_TIMEOUT=100
)

# transfer_two_cables: nodes a and b with the RDMA cables ab-ba and ax-bx.
transfer_two_cables() {
	FAULTS_ENV+=("${TRANSFER_PATIENT[@]}")
	faults_init
	mesh_node a b
	mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
	mesh_link a ax 10.77.9.1/24 b bx 10.77.9.2/24
	rdma_up
}

# transfer_while_away AWAY INSTEAD BACK BETTER SIZE...: after the command AWAY a comm is made, which
# carries messages of each SIZE over a path that the log has as INSTEAD. After the command BACK it
# gets a path that the log has as BETTER, and carries more of them.
transfer_while_away() {
	local role node

	for role in "connect a" "listen b"; do
		node=${role#* }
		play "$node" "$node" < <(while_away_script "${role% *}" "$node" "${@:5}")
	done
	arrives open.a open.b
	$1
	touch "$FAULTS/away"
	arrives carried.a carried.b
	said a INFO "path: from=a to=b $2"
	unsaid a INFO "path: from=a to=b $4"
	$3
	wait_for "grep -Eq '^INFO .*path: from=a to=b $4' $FAULTS/a.log" 120 ||
		faults_show "the comm gets no path '$4'"
	touch "$FAULTS/back"
	ended a
	ended b
}

# while_away_script ROLE NODE SIZE...
while_away_script() {
	local i sizes=("${@:3}")

	printf '%s\n' "limit $TRANSFER_MS" "init 0" "touch $FAULTS/open.$2" "await $FAULTS/away"
	meet "$1" "${sizes[@]}"
	for i in "${!sizes[@]}"; do echo "transfer $i ${sizes[i]} 3 5"; done
	printf '%s\n' "touch $FAULTS/carried.$2" "await $FAULTS/back"
	for i in "${!sizes[@]}"; do echo "transfer $i ${sizes[i]} 20 5"; done
	for i in "${!sizes[@]}"; do echo "dereg $i"; done
	echo "close 0"
	[[ $1 != listen ]] || echo "close-listen 0"
	echo "finalize 0"
}

# A file that both processes await before the first message; empty: none. What is counted from then
# on is that of the messages: await "connected" and "accepted", and rdma_quiet.
TRANSFER_GATE=""

# exchange_start ROOM COMMAND...: node a sends, node b receives, with a buffer of ROOM bytes and
# fault_driver's COMMAND; both processes are under way.
exchange_start() {
	local moves=("buffer 0 $1" "reg 0 0 0" "${*:2}" "dereg 0" "close 0")

	[[ ! $TRANSFER_GATE ]] || moves=("await $TRANSFER_GATE" "${moves[@]}")
	rm -f "$FAULTS"/{handle,accepted,connected,enough}
	play b receiver <<-END
		limit $TRANSFER_MS
		accepts 0 $FAULTS/handle
		touch $FAULTS/accepted
		$(printf '%s\n' "${moves[@]}")
		close-listen 0
	END
	play a sender <<-END
		limit $TRANSFER_MS
		connects 0 $FAULTS/handle
		touch $FAULTS/connected
		$(printf '%s\n' "${moves[@]}")
	END
}

# transfer_start SIZE COUNT [ROOM]: so many messages, into receives of ROOM bytes if that is more.
transfer_start() { exchange_start "${3:-$1}" transfer_into 0 "$1" "$2" 1 "${3:-$1}"; }

# stream_start SIZE: messages until stream_stop.
stream_start() { exchange_start "$1" stream 0 "$1" "$FAULTS/enough" 1; }
stream_stop() { touch "$FAULTS/enough"; }

# transfer SIZE COUNT [ROOM]: as transfer_start, and all has arrived.
transfer() {
	transfer_start "$@"
	ended sender
	ended receiver
}
