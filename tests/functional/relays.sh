# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# relays.sh - processes that relay between the nodes a and b of cables.sh, and streams over them. To
# be sourced by tests.
#
#	relays_init
#	mesh_node a b p q		and their links
#	begin NAME p q			relays on p and q, and streams over both
#	relay r				another one
#	relay_ends p [STATUS]

# shellcheck source=tests/functional/cables.sh
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

# NCCL_MESH_DEAD_PEER_TIMEOUT, in seconds: with other paths silence is not what ends one.
SILENCE=60
ENVIRONMENT=(
	"MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_CONNECT_TIMEOUT=60"
	"NCCL_MESH_ACCEPT_TIMEOUT=60"
)
RUN=0
declare -A RELAY=() # node -> its process

# relays_init: as mesh_init; makes the folder for logs.
relays_init() {
	CABLES_FOLDER=$MESH_RESULTS/$(basename "$0" .sh).files
	rm -rf "$CABLES_FOLDER"
	mkdir -p "$CABLES_FOLDER" || fail "cannot make $CABLES_FOLDER"
	mesh_init
}

# relay NODE: a process that relays until the file "close" is there.
relay() {
	local script=$CABLES_FOLDER/relay_$1.script

	rm -f "$CABLES_FOLDER/ready_$1"
	printf '%s\n' "limit 300000" "init 0" "touch $CABLES_FOLDER/ready_$1" \
		"await $CABLES_FOLDER/close" "finalize 0" >"$script"
	mesh_spawn "$1" "$CABLES_FOLDER/relay_$1.log" env "${ENVIRONMENT[@]}" \
		"NCCL_MESH_DEAD_PEER_TIMEOUT=$SILENCE" \
		"$MESH_BUILD/functional/fault_driver" "$MESH_BUILD/libnccl-net-mesh.so" "$script"
	RELAY[$1]=$MESH_SPAWNED
	wait_for "[[ -e $CABLES_FOLDER/ready_$1 ]]" 60 || fail "the relay $1 does not start"
}

# begin NAME RELAY...: the relays, and streams over all of them.
begin() {
	local node

	RUN=$((RUN + 1))
	rm -f "$CABLES_FOLDER/close"
	for node in "${@:2}"; do relay "$node"; done
	stream "$1_$RUN" 0 "${ENVIRONMENT[@]}" "NCCL_MESH_DEAD_PEER_TIMEOUT=$SILENCE"
	for node in "${@:2}"; do
		grep -q "path: from=a to=b .*via=\(.*,\)\?${node}[, ]" "$STREAM_FOLDER/rank0.out" ||
			stream_fail "no path leads through $node"
	done
	moves 20000
}

# relay_ends NODE [STATUS]
relay_ends() {
	local status

	touch "$CABLES_FOLDER/close"
	wait_for "! kill -0 ${RELAY[$1]} 2>/dev/null" 60 || fail "the relay $1 does not end"
	wait "${RELAY[$1]}" 2>/dev/null
	status=$?
	((status == ${2:-0})) || fail "the relay $1 has ended with status $status"
}
