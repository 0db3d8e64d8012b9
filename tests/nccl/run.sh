#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - NCCL itself over the plugin: every operation, checked and timed, and for a ratio the
# same over NCCL's own sockets.
#
# On one machine, as root:  tests/nccl/run.sh [triangle|k4]... [-- ARGUMENT...]
#   One rank in each network namespace of these meshes (default: both), all on this machine's GPUs.
#   Each gets an NCCL_HOSTID of its own, so that NCCL takes them for machines and uses the network.
#   Without CUDA MPS ranks on one GPU take turns: the bytes count, the times do not.
# On several machines, one process for each rank:
#   torchrun --nnodes N --nproc_per_node 1 ... --no_python tests/nccl/run.sh
#   srun tests/nccl/run.sh
#   mpirun -x MASTER_ADDR=10.0.0.1 tests/nccl/run.sh
#
# ARGUMENTs are nccl_collectives', which --help explains.
# MESH_BUILD    build folder (default build)
# NCCL_LIBRARY  the NCCL or RCCL to test (default: tests/nccl/find_nccl.py)
# NO_RATIO=1    leave out NCCL's own sockets
# Exit status 0, 1, or 77 with the reason: 'skipped: no GPU'. Fails unless NCCL's log says that all
# its communicators used our network.
NCCL_TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/functional/lib.sh
. "$NCCL_TESTS/../functional/lib.sh"
# shellcheck source=tests/nccl/launcher.sh
. "$NCCL_TESTS/launcher.sh"

PROGRAM=$MESH_BUILD/nccl/nccl_collectives
PLUGIN=$MESH_BUILD/libnccl-net-mesh.so
LOGS=$MESH_BUILD/nccl/logs
# All six tests; the last ends the ranks.
TESTS=operations,split,repeat,two,registered

# What every rank gets, whoever starts it.
COMMON=(NCCL_DEBUG=INFO "NCCL_DEBUG_SUBSYS=INIT,NET,ENV")
# Ranks that share a machine: its GPUs' own fabric must not join what HOSTID keeps apart, and the
# kernels of all ranks have to fit on one GPU together.
SHARED=(NCCL_MNNVL_ENABLE=0 NCCL_SOCKET_IFNAME=mgmt0 NCCL_MAX_NCHANNELS=4 NCCL_NET_GDR_LEVEL=LOC)

library_arguments() {
	local library=${NCCL_LIBRARY:-}

	[[ $library ]] || library=$("$NCCL_TESTS/find_nccl.py" library) || return 0
	printf '%s\n' --nccl "$library"
}

# One rank of a run over several machines.
run_as_rank() {
	local log=$LOGS/$LAUNCHER-rank$RANK.log status

	mkdir -p "$LOGS"
	echo "rank $RANK of $WORLD_SIZE, started by $LAUNCHER, rank 0 at $MASTER_ADDR"
	env "${COMMON[@]}" NCCL_NET_PLUGIN="$PLUGIN" "$PROGRAM" "${LIBRARY[@]}" "$@" 2>&1 |
		tee "$log" | grep -v 'NCCL INFO'
	status=${PIPESTATUS[0]}
	((status != 77)) || exit 77
	((status == 0)) || fail "rank $RANK ended with status $status; $log has NCCL's log"
	"$NCCL_TESTS/read_log.py" --inside "$log" || fail "NCCL did not use our network"
}

# mesh_of triangle|k4: makes the nodes and fills NODES.
mesh_of() {
	local names=(a b c d) i j number=20

	case $1 in
	triangle)
		NODES=(a b c)
		mesh_up triangle
		;;
	k4)
		NODES=("${names[@]}")
		mesh_node "${NODES[@]}"
		for i in 0 1 2 3; do
			for ((j = i + 1; j < 4; j++)); do
				((number++))
				# Not "ad": ip takes that for its keyword "address".
				mesh_link "${names[i]}" "to_${names[j]}" "10.77.$number.1/30" \
					"${names[j]}" "to_${names[i]}" "10.77.$number.2/30"
			done
		done
		;;
	esac
}

# start_ranks RUN SETTING... -- ARGUMENT...: one rank in each of NODES; status in RANKS_STATUS.
start_ranks() {
	local folder=$LOGS/$1 settings=() pids=() rank node

	shift
	while [[ $1 != -- ]]; do
		settings+=("$1")
		shift
	done
	shift
	mkdir -p "$folder"
	RANKS_STATUS=()
	for rank in "${!NODES[@]}"; do
		node=${NODES[rank]}
		mesh_spawn "$node" "$folder/rank$rank.out" env "${COMMON[@]}" "${SHARED[@]}" \
			NCCL_HOSTID="$node" RANK="$rank" WORLD_SIZE="${#NODES[@]}" \
			LOCAL_RANK="$rank" MASTER_ADDR="$(mesh_mgmt_addr "${NODES[0]}")" \
			MASTER_PORT=29500 "${settings[@]}" \
			timeout -k 10 "${TEST_TIMEOUT:-3000}" "$PROGRAM" "${LIBRARY[@]}" "$@"
		pids+=("$MESH_SPAWNED")
	done
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}"
		RANKS_STATUS[rank]=$?
	done
}

# run_checked RUN NETWORK SETTING... -- ARGUMENT...: all ranks end well, over this network.
run_checked() {
	local run=$1 network=$2

	shift 2
	start_ranks "$run" "$@"
	[[ ! ${RANKS_STATUS[*]} =~ [1-9] ]] ||
		{ ranks_show "$LOGS/$run"; fail "$run: ranks ended with ${RANKS_STATUS[*]}"; }
	"$NCCL_TESTS/read_log.py" --network "$network" "$LOGS/$run"/rank*.out ||
		fail "$run: NCCL did not use $network"
	grep -v 'NCCL INFO' "$LOGS/$run/rank0.out"
}

# The victim is rank 1: killed (137); everybody else has to end well.
run_death() {
	local run=$1 rank

	start_ranks "$run" NCCL_NET_PLUGIN="$PLUGIN" -- --tests death --victim 1
	for rank in "${!RANKS_STATUS[@]}"; do
		((RANKS_STATUS[rank] == (rank == 1 ? 137 : 0))) ||
			{ ranks_show "$LOGS/$run"; fail "$run: ${RANKS_STATUS[*]}"; }
	done
	cat "$LOGS/$run"/rank*.out | grep 'after rank 1 died'
}

run_mesh() (
	local mesh=$1

	shift
	mesh_init
	mesh_of "$mesh"
	echo "==== $mesh: ranks on ${NODES[*]}"
	run_checked "$mesh" Mesh NCCL_NET_PLUGIN="$PLUGIN" -- --tests $TESTS "$@"
	run_death "$mesh-death"
	[[ ! ${NO_RATIO:-} ]] || return 0
	run_checked "$mesh-socket" Socket NCCL_NET_PLUGIN=none NCCL_NET=Socket -- \
		--tests operations "$@"
	"$NCCL_TESTS/ratio.py" "$LOGS/$mesh/rank0.out" "$LOGS/$mesh-socket/rank0.out"
)

main() {
	local meshes=() mesh detected

	# torchrun takes a '--' for its own.
	while (($#)) && [[ $1 != -* ]]; do
		[[ $1 == triangle || $1 == k4 ]] ||
			fail "usage: $0 [triangle|k4]... [-- ARGUMENT...]"
		meshes+=("$1")
		shift
	done
	[[ ${1:-} != -- ]] || shift
	[[ -x $PROGRAM ]] || skip "nccl.h was not at hand when this was built: no $PROGRAM"
	mapfile -t LIBRARY < <(library_arguments)
	launcher_detect
	detected=$?
	((detected != 2)) || exit 1
	if ((detected == 0)); then
		run_as_rank "$@"
		return
	fi
	"$PROGRAM" --check-gpu || exit
	((${#meshes[@]})) || meshes=(triangle k4)
	rm -rf "$LOGS"
	for mesh in "${meshes[@]}"; do
		run_mesh "$mesh" "$@" || exit
	done
	echo "PASS: ${meshes[*]}; the logs are in $LOGS"
}

main "$@"
