# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# serving.sh - nodes of a test that run `fi_mesh serve`. To be sourced behind what says where the
# logs are: faults.sh or expect.sh.

# shellcheck source=tests/functional/lib.sh
declare -F mesh_init >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

declare -A SERVED=() # node -> pid

# serving_log NODE: what it prints.
serving_log() { echo "${FAULTS:-$OUT}/serve-$1"; }

# serving_await NODE WORDS: until it has printed a line that begins with them.
serving_await() {
	wait_for "grep -qs '^$2' $(serving_log "$1")" 60 ||
		fail "$1 does not serve: $(cat "$(serving_log "$1")")"
}

# serve NODE... [-- NAME=VALUE... OPTION...]: starts `fi_mesh serve` there and waits until each
# answers, and relays with --relay.
serve() {
	local node nodes=() environment=() begun="answering neighbours"

	while (($#)) && [[ $1 != -- ]]; do
		nodes+=("$1")
		shift
	done
	shift || true
	while [[ ${1:-} == [A-Z]*=* ]]; do
		environment+=("$1")
		shift
	done
	[[ " ${environment[*]} " != *" NCCL_MESH_NEIGHBOURS=off "* ]] || begun="listening on"
	[[ " $* " != *" --relay "* ]] || begun="relaying for"
	for node in "${nodes[@]}"; do
		mesh_spawn "$node" "$(serving_log "$node")" env "${environment[@]}" \
			"$MESH_BUILD/fi_mesh" serve "$@"
		SERVED[$node]=$MESH_SPAWNED
	done
	for node in "${nodes[@]}"; do serving_await "$node" "$begun"; done
}

# end_serving [NODE...]: by default on each node. A stopped process continues first.
end_serving() {
	local node

	(($#)) || set -- "${!SERVED[@]}"
	for node in "$@"; do
		kill -CONT "${SERVED[$node]}"
		kill -INT "${SERVED[$node]}" && wait "${SERVED[$node]}" ||
			fail "serve of $node ended with $?: $(cat "$(serving_log "$node")")"
		unset "SERVED[$node]"
	done
}
