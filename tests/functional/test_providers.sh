#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_providers.sh - NCCL_MESH_PROVIDER and NCCL_MESH_NICS, right and wrong, from end to end.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 16K --check-every 2 --sizes "8,256K" --iters 10 --repeat 1)
# Seconds in which a run that cannot work has to have said so; the plugin's deadline is 5.
DEADLINE=$(slow && echo 60 || echo 20)

# environment_by_rank VARIABLE VALUE...: rank N gets the Nth value; an empty one unsets it.
environment_by_rank() {
	# shellcheck disable=SC2016 # expanded by each rank
	RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=5 NCCL_MESH_ACCEPT_TIMEOUT=10 bash -c '
		variable=$1 number=$2
		shift 2
		values=("${@:1:number}")
		[[ ! ${values[RANK]} ]] || export "$variable=${values[RANK]}"
		exec "${@:number+1}"' rank "$1" $(($# - 1)) "${@:2}")
}

# The path line names the provider.
test_each_provider() {
	local provider

	for provider in tcp 'tcp;ofi_rxm'; do
		RANKS_ENV=(NCCL_DEBUG=INFO "NCCL_MESH_PROVIDER=$provider")
		ranks_pass "$provider" a b -- "${RUN_ARGS[@]}" --verbose
		said "$provider" "path: from=a to=b .*provider=$provider( |\$)"
		expect_paths "$provider" 0 1 "x1:10.77.1.1>10.77.1.2" "x2:10.77.2.1>10.77.2.2"
		expect_paths "$provider" 1 0 "x1:10.77.1.2>10.77.1.1" "x2:10.77.2.2>10.77.2.1"
		note "NCCL_MESH_PROVIDER=$provider: right"
	done
}

test_mismatch() {
	environment_by_rank NCCL_MESH_PROVIDER tcp 'tcp;ofi_rxm'
	ranks_refuse mismatch "$DEADLINE" 'we use the provider .* and it uses' a b -- \
		"${RUN_ARGS[@]}"
	said mismatch 'Set NCCL_MESH_PROVIDER to the same on all nodes'
	note "two providers that do not talk to each other: an error in words"
}

test_unknown() {
	environment_by_rank NCCL_MESH_PROVIDER udp udp
	ranks_refuse unknown "$DEADLINE" 'NCCL_MESH_PROVIDER="udp" is not known' \
		a b -- "${RUN_ARGS[@]}"
	note "an unknown provider: an error in words"
}

# nics_take LIST_OF_A LIST_OF_B NIC NET: both directions use that NIC, of 10.77.NET.0/24.
nics_take() {
	local run="nics-$1-$2" net=$4 dev

	environment_by_rank NCCL_MESH_NICS "$1" "$2"
	for dev in 0 1; do
		ranks_pass "$run-$dev" a b -- "${RUN_ARGS[@]}" --dev $dev
		expect_cable "$run-$dev" 0 1 "$3:10.77.$net.1" "$3:10.77.$net.2"
	done
	note "NCCL_MESH_NICS a: '$1' b: '$2': $3 only"
}

test_nics() {
	local here_and_there

	nics_take '=x1' '=x1' x1 1
	nics_take x2 x2 x2 2
	nics_take '^x1' '^x1' x2 2
	nics_take '^x1,nothing' '' x2 2
	nics_take mgmt mgmt mgmt0 0
	here_and_there='Here: 10.77.1.1/24 \(x1\); there: 10.77.2.2/24'
	here_and_there+='|Here: 10.77.2.2/24 \(x2\); there: 10.77.1.1/24'
	environment_by_rank NCCL_MESH_NICS '=x1' '=x2'
	# Either side may be the first, whose error ends the run.
	ranks_refuse nics-apart "$DEADLINE" "$here_and_there" \
		a b -- "${RUN_ARGS[@]}"
	said nics-apart 'no common subnet'
	note "NCCL_MESH_NICS that leaves no common cable: an error in words"
	environment_by_rank NCCL_MESH_NICS '=x1' 'x1,:3'
	ranks_refuse nics-wrong "$DEADLINE" 'NCCL_MESH_NICS' a b -- "${RUN_ARGS[@]}"
	note "NCCL_MESH_NICS that cannot be read: an error in words"
}

test_management_only() {
	uncable a x1
	uncable a x2
	RANKS_ENV=(NCCL_DEBUG=INFO)
	ranks_pass management a b -- "${RUN_ARGS[@]}" --verbose
	said management 'NIC mgmt0 taken'
	expect_cable management 0 1 "mgmt0:10.77.0.1" "mgmt0:10.77.0.2"
	note "the management network is used when there is nothing else"
}

mesh_init
mesh_node a b
mesh_link a x1 10.77.1.1/24 b x1 10.77.1.2/24
mesh_link a x2 10.77.2.1/24 b x2 10.77.2.2/24
for t in each_provider mismatch unknown nics management_only; do "test_$t"; done
expect_check
