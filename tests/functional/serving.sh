# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# serving.sh - nodes of a test that run `fi_mesh serve`. To be sourced.

# shellcheck source=tests/functional/faults.sh
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

declare -A SERVED=() # node -> pid

# serving_spawn NODE [COMMAND...]: starts `fi_mesh serve` there, behind COMMAND (env NAME=VALUE).
serving_spawn() {
	local node=$1

	shift
	mesh_spawn "$node" "$FAULTS/serve-$node" "$@" "$MESH_BUILD/fi_mesh" serve
	SERVED[$node]=$MESH_SPAWNED
}

# serving_await NODE: until it answers.
serving_await() {
	wait_for "grep -qs '^answering neighbours' $FAULTS/serve-$1" 60 ||
		fail "$1 does not serve: $(cat "$FAULTS/serve-$1")"
}

# serve NODE...: starts `fi_mesh serve` there and waits until it answers.
serve() {
	local node

	for node in "$@"; do serving_spawn "$node"; done
	for node in "$@"; do serving_await "$node"; done
}

# end_serving [NODE...]: by default on each node. A stopped process continues first.
end_serving() {
	local node

	(($#)) || set -- "${!SERVED[@]}"
	for node in "$@"; do
		kill -CONT "${SERVED[$node]}"
		kill -INT "${SERVED[$node]}" && wait "${SERVED[$node]}"
		unset "SERVED[$node]"
	done
}
