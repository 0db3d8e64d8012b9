#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_libfabric_versions.sh - nodes that run different versions of libfabric understand each other.
#
# MESH_OTHER_BUILD  a build folder whose programs run with another libfabric (./test.sh libfabric)
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

OTHER=${MESH_OTHER_BUILD:-}
[[ $OTHER ]] || skip "MESH_OTHER_BUILD names no build that runs with another libfabric"
[[ $OTHER == /* ]] || OTHER=$MESH_TOP/$OTHER
# Inline, with grants, and in several segments.
RUN_ARGS=(--timeout 60 --check-max 1M --sizes "8,8K,1M,6M" --iters 4 --repeat 1 --verbose)

# other_build RANK: this rank runs the other build's programs.
other_build() {
	# shellcheck disable=SC2016 # expanded by each rank
	RANKS_ENV=("${RANKS_ENV[@]}" bash -c '
		rank=$1 ours=$2 other=$3
		shift 3
		((RANK != rank)) || set -- "${@/#"$ours"/"$other"}"
		exec "$@"' rank "$1" "$MESH_BUILD/" "$OTHER/")
}

# version_of RUN RANK: the libfabric that this rank says it runs.
version_of() {
	grep -oE 'libfabric [0-9.]+, largest write' "$OUT/$1/rank$2.out" |
		sed -n '1s/.* \(.*\),.*/\1/p'
}

# Who connects first differs with the rank that is the other one.
test_with() {
	local provider=$1 rank=$2 run ours theirs

	run=$provider-$rank
	RANKS_ENV=(NCCL_DEBUG=INFO "NCCL_MESH_PROVIDER=$provider")
	other_build "$rank"
	ranks_pass "$run" a b -- "${RUN_ARGS[@]}"
	expect_cable "$run" 0 1 "ab:10.77.1.1" "ba:10.77.1.2"
	ours=$(version_of "$run" $((1 - rank)))
	theirs=$(version_of "$run" "$rank")
	[[ $ours && $theirs && $ours != "$theirs" ]] ||
		fail "run $run: the versions are '$ours' and '$theirs'"
	note "$provider: rank $rank has libfabric $theirs, the other $ours: every byte is right"
}

mesh_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
for provider in tcp 'tcp;ofi_rxm'; do
	for rank in 0 1; do test_with "$provider" $rank; done
done
expect_check
