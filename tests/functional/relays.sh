# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# relays.sh - processes that relay between the nodes a and b of cables.sh, and streams over them. To
# be sourced by tests.
#
#	faults_init
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

# relay NODE: a process of that name, which relays until the file "over" is there.
relay() {
	local FAULTS_ENV=("${ENVIRONMENT[@]}" "NCCL_MESH_DEAD_PEER_TIMEOUT=$SILENCE")

	rm -f "$FAULTS/relays.$1"
	relays "$1" "$1"
}

# begin NAME RELAY...: the relays, and streams over all of them.
begin() {
	local node line

	RUN=$((RUN + 1))
	rm -f "$FAULTS/over"
	for node in "${@:2}"; do relay "$node"; done
	stream "$1_$RUN" 0 "${ENVIRONMENT[@]}" "NCCL_MESH_DEAD_PEER_TIMEOUT=$SILENCE"
	for node in "${@:2}"; do
		line="path: from=a to=b .*via=\(.*,\)\?${node}[, ]"
		wait_for "grep -q '$line' $STREAM_FOLDER/rank0.out" $((5 * FAULTS_SLOW)) ||
			stream_fail "no path leads through $node"
	done
	moves 20000
}

# relay_ends NODE [STATUS]
relay_ends() {
	touch "$FAULTS/over"
	ended "$@"
}
