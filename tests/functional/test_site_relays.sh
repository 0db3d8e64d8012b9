#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_site_relays.sh - two nodes of one site without a common link, which relays of their site and
# of another one could join: those of their site carry everything, also where they are more.
# seconds: 10
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

SIZE=$((1 << 20))
ROUNDS=8
RUN_ARGS=(--timeout 100 --no-check --sizes "$SIZE" --iters "$ROUNDS" --repeat 1 --verbose)
QUIET=$((SIZE / 2)) # what connections cost that carry no data, and more

declare -A SITE=()

# shellcheck disable=SC2016 # expanded by the inner shell
mesh_exec() {
	exec ip netns exec "$MESH_PREFIX$1" unshare --uts \
		sh -c 'hostname "$1" && NCCL_MESH_SITE=$0 NCCL_MESH_NODE_NAME=$1 && shift &&
			export NCCL_MESH_SITE NCCL_MESH_NODE_NAME && exec "$@"' "${SITE[$1]:-}" "$@"
}

# carried RUN NODE NIC...: runs all nodes, and sets CARRIED to what these NICs have sent: the pair
# is ranks 0 and 1.
carried() {
	local run=$1 node=$2 before after i

	before=$(bytes_sent "$node" "${@:3}")
	ranks_pass "$run" "${NODES[@]}" -- "${RUN_ARGS[@]}" --pairs 0-1
	after=$(bytes_sent "$node" "${@:3}")
	read -ra before <<<"$before"
	read -ra CARRIED <<<"$after"
	for i in "${!CARRIED[@]}"; do ((CARRIED[i] -= before[i])); done
}

# Relay a is first by its name, and its id may be.
test_one_relay() {
	NODES=(m n a b)
	mesh_node "${NODES[@]}"
	mesh_cabled ma an mb bn
	carried none m ma mb
	((CARRIED[0] > SIZE && CARRIED[1] > SIZE)) ||
		fail "without sites not both relays carry: ${CARRIED[*]}"
	note "without sites relays a and b carry: ${CARRIED[*]} bytes"
	SITE=([m]=east [n]=east [a]=west [b]=east)
	carried east m ma mb
	((CARRIED[0] < QUIET && CARRIED[1] > ROUNDS * SIZE)) ||
		fail "relay b of the site does not carry all: ${CARRIED[*]}"
	SITE[a]=east SITE[b]=west
	carried west m ma mb
	((CARRIED[1] < QUIET && CARRIED[0] > ROUNDS * SIZE)) ||
		fail "relay a of the site does not carry all: ${CARRIED[*]}"
	note "with sites the relay of the site carries all"
}

# The way over the other site is shorter.
test_longer_way() {
	NODES=(o p c d e)
	mesh_node "${NODES[@]}"
	mesh_cabled oc cp od de ep
	SITE=([o]=east [p]=east [c]=west [d]=east [e]=east)
	carried longer o oc od
	((CARRIED[0] < QUIET && CARRIED[1] > ROUNDS * SIZE)) ||
		fail "relays d and e of the site do not carry all: ${CARRIED[*]}"
	note "two relays of the site carry, and not the one of the other site"
}

mesh_init
test_one_relay
test_longer_way
