#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_nccl_tools.sh - the tools of tests/nccl: which launcher started a rank, the parts of a log,
# where nccl.h is; and that they report 'skipped: no GPU' if there is none.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

NCCL_TESTS=$MESH_TOP/tests/nccl
PROGRAM=$MESH_BUILD/nccl/nccl_collectives
BOX=$(mktemp -d)
trap 'rm -rf "$BOX"' EXIT

# launched EXPECTED VARIABLE=VALUE...: launcher_detect in this environment says so.
launched() {
	local expected=$1 found

	shift
	# shellcheck disable=SC2016 # expanded by the inner shell
	found=$(env -i PATH="$BOX:$PATH" "$@" bash -c '. "$0" 2>/dev/null && launcher_detect
		echo "$? $LAUNCHER ${RANK-} ${WORLD_SIZE-} ${LOCAL_RANK-}" \
			"${MASTER_ADDR-} ${MASTER_PORT-}"' \
		"$NCCL_TESTS/launcher.sh" 2>/dev/null)
	[[ $found == "$expected" ]] || fail "with $*: '$found', not '$expected'"
}

launchers() {
	local slurm=(SLURM_PROCID=1 SLURM_NTASKS=3 SLURM_LOCALID=0 "SLURM_JOB_NODELIST=n[1-3]")
	local ompi=(OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK=0)

	printf '#!/bin/sh\n[ "$*" = "show hostnames n[1-3]" ] && printf "n1\\nn2\\nn3\\n"\n' \
		>"$BOX/scontrol"
	chmod +x "$BOX/scontrol"
	launched "1 none     "
	launched "0 torchrun 1 2 0 10.0.0.1 29400" RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1 \
		MASTER_PORT=29400
	launched "0 slurm 1 3 0 n1 29500" "${slurm[@]}"
	launched "0 slurm 1 3 0 10.0.0.9 29500" "${slurm[@]}" MASTER_ADDR=10.0.0.9
	# mpirun inside a Slurm job: mpirun's numbers count.
	launched "0 mpirun 2 3 0 10.0.0.9 29500" "${slurm[@]}" "${ompi[@]}" MASTER_ADDR=10.0.0.9
	launched "0 mpirun 2 3 2 127.0.0.1 29500" "${ompi[@]}" OMPI_COMM_WORLD_LOCAL_SIZE=3 \
		OMPI_COMM_WORLD_LOCAL_RANK=2
	launched "2 mpirun 2 3 0  29500" "${ompi[@]}" OMPI_COMM_WORLD_LOCAL_SIZE=1
	launched "0 mpirun 0 2 1 10.0.0.9 29500" PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=1 \
		MASTER_ADDR=10.0.0.9
	note "torchrun, Slurm and mpirun are distinguished"
}

# Our declarations are NCCL's: each file compiles with its header as well. CUDA's may be missing.
stand_ins() {
	local folder file

	folder=$("$NCCL_TESTS/find_nccl.py" header) || { note "no nccl.h here"; return; }
	cp "$folder/nccl.h" "$BOX/"
	for file in "$NCCL_TESTS"/*.c; do
		gcc -std=gnu11 -D_GNU_SOURCE= -DCOLLECTIVES_NCCL_H= -Wall -Wextra \
			-Wno-unused-parameter -Werror -fsyntax-only \
			-I"$MESH_TOP"{,/fi_utils,/tests/driver} \
			-isystem "$BOX" -idirafter "$NCCL_TESTS/stand_in" "$file" ||
			fail "$file needs more than nccl.h"
	done
	note "compiles with $folder/nccl.h and without CUDA's headers"
}

# This machine may have a GPU: then only a hidden one shows what happens without.
without_gpu() {
	local output status

	[[ -x $PROGRAM ]] || { note "nccl_collectives is not built"; return; }
	output=$(CUDA_VISIBLE_DEVICES='' "$NCCL_TESTS/run.sh" triangle 2>&1)
	status=$?
	[[ $status == 77 && $output == *"skipped: no GPU"* ]] ||
		fail "run.sh without a GPU: status $status, output '$output'"
	note "run.sh says 'skipped: no GPU'"
}

# What run.sh does around NCCL, with a program that only prints its arguments.
runs_ranks() {
	local build=$BOX/build output settings=() setting

	mkdir -p "$build/nccl"
	cat >"$build/nccl/nccl_collectives" <<-'END'
		#!/bin/sh
		[ "$1" != --check-gpu ] || exit 0
		case "$*" in *"--tests death"*) [ "$RANK" != 1 ] || kill -9 $$;; esac
		network=Socket
		[ "$NCCL_NET_PLUGIN" != mesh ] || network=Mesh
		echo "NCCL INFO Using network $network"
		echo "rank $RANK: error 1 s after rank 1 died"
		env
	END
	chmod +x "$build/nccl/nccl_collectives"
	output=$(NO_PYTORCH=1 NO_RATIO=1 MESH_BUILD=$build LD_LIBRARY_PATH=/mine \
		"$NCCL_TESTS/run.sh" local 2>&1) || fail "run.sh local: $output"
	# NCCL before 2.21 takes no path in NCCL_NET_PLUGIN, but finds the name in a folder.
	settings=(NCCL_NET_PLUGIN=mesh NCCL_HOSTID=b NCCL_MESH_NODE_NAME=b NCCL_MESH_NICS=lo
		NCCL_SOCKET_IFNAME=lo NCCL_RAS_ENABLE=0 MASTER_ADDR=127.0.0.1 RANK=1 WORLD_SIZE=3)
	for setting in "${settings[@]}"; do
		grep -qx "$setting" "$build/nccl/logs/local/rank1.out" || fail "not set: $setting"
	done
	grep -q "^LD_LIBRARY_PATH=$build:/mine" "$build/nccl/logs/local/rank1.out" ||
		fail "LD_LIBRARY_PATH does not begin with the build"
	# Where no namespaces can be made, ranks run all the same.
	output=$(NO_PYTORCH=1 NO_RATIO=1 MESH_BUILD=$build unshare --map-root-user --user \
		setpriv --bounding-set -all --inh-caps -all "$NCCL_TESTS/run.sh" 2>&1) ||
		fail "run.sh without namespaces: $output"
	[[ $output == *"==== local"*"PASS: local"* ]] || fail "run.sh without namespaces: $output"
	note "run.sh starts ranks with and without namespaces"
}

# The collectives' calls and what they check, against a simulated NCCL.
operations() {
	[[ -x $MESH_BUILD/nccl/test_operations ]] || { note "no cmocka here"; return; }
	"$MESH_BUILD/nccl/test_operations" || fail "test_operations"
}

python3 "$NCCL_TESTS/test_tools.py" || fail "test_tools.py"
launchers
operations
stand_ins
without_gpu
runs_ranks
