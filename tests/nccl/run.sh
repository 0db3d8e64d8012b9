#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - NCCL itself over the plugin: every operation, checked and timed, and for a ratio the
# same over NCCL's own sockets.
#
# On one machine:  tests/nccl/run.sh [triangle|k4|local]... [-- ARGUMENT...]
#   triangle, k4   as root: one rank in each network namespace of such a mesh
#   local          three ranks over the loopback interface, without namespaces and root
#   Default: triangle and k4, or local where namespaces cannot be made. All ranks are on this
#   machine's GPUs; each gets an NCCL_HOSTID of its own, so that NCCL takes them for machines and
#   uses the network. Without CUDA MPS ranks on one GPU take turns: the bytes count, the times do
#   not, and all sizes take long. To begin with:
#     tests/nccl/run.sh triangle -- --max 16M --iterations 5 --repeats 10
# On several machines, one process for each rank:
#   torchrun --nnodes N --nproc_per_node 1 ... --no_python tests/nccl/run.sh
#   srun tests/nccl/run.sh
#   mpirun -x MASTER_ADDR=10.0.0.1 tests/nccl/run.sh
#
# ARGUMENTs are nccl_collectives', which --help explains.
# MESH_BUILD    build folder (default build)
# NCCL_LIBRARY  the NCCL or RCCL to test (default: tests/nccl/find_nccl.py)
# RCCL=1        test RCCL: rccl_collectives
# NO_RATIO=1    leave out NCCL's own sockets
# NO_PYTORCH=1  leave out examples/all_reduce.py, which runs where python3 has PyTorch
# Exit status 0, 1, or 77 with the reason: 'skipped: no GPU'. Fails unless NCCL's log says that all
# its communicators used our network.
# Installed, this script is the command nccl_mesh_test.
NCCL_TESTS=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# shellcheck source=tests/functional/lib.sh
. "$NCCL_TESTS/../functional/lib.sh"
# shellcheck source=tests/nccl/launcher.sh
. "$NCCL_TESTS/launcher.sh"

KIND=${RCCL:+r}
KIND=${KIND:-n}ccl
PROGRAM=$MESH_BUILD/nccl/${KIND}_collectives
LOGS=$MESH_BUILD/nccl/logs
[[ -w $MESH_BUILD/nccl ]] || LOGS=$(mktemp -d -t nccl_mesh_test.XXXXXX)
# All seven tests; the last ends the ranks.
TESTS=first,operations,split,repeat,two,registered

# What every rank gets, whatever starts it.
COMMON=(NCCL_DEBUG=INFO "NCCL_DEBUG_SUBSYS=INIT,NET,ENV")
# NCCL before 2.21 takes no path in NCCL_NET_PLUGIN.
# NCCL 2.28.3 to 2.29.7 forget it without the reference.
OURS=(NCCL_NET_PLUGIN=mesh NCCL_NET_PLUGIN_REF_COUNT=1)
# Ranks that share a machine: its GPUs' own fabric must not join what HOSTID keeps apart, and the
# kernels of all ranks have to fit on one GPU together. The port of RAS is one for each machine.
SHARED=(NCCL_MNNVL_ENABLE=0 NCCL_MAX_NCHANNELS=4 NCCL_NET_GDR_LEVEL=LOC NCCL_RAS_ENABLE=0)
# NCCL keeps queues of some MB for each communicator of each rank there; Docker gives 64 MB to all.
SHM_MIN_KB=$((256 << 10))

# The plugin, and CUDA's runtime, which PyTorch keeps where the loader does not look.
library_path() {
	local runtime

	runtime=$("$NCCL_TESTS/find_nccl.py" runtime "$KIND")
	echo "$MESH_BUILD${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}${runtime:+:$runtime}"
}

library_arguments() {
	local library=${NCCL_LIBRARY:-}

	[[ $library ]] || library=$("$NCCL_TESTS/find_nccl.py" library "$KIND") || return 0
	printf '%s\n' --nccl "$library"
}

# One rank of a run over several machines.
run_as_rank() {
	local log=$LOGS/$LAUNCHER-rank$RANK.log status

	mkdir -p "$LOGS"
	echo "rank $RANK of $WORLD_SIZE, started by $LAUNCHER, rank 0 at $MASTER_ADDR"
	env "${COMMON[@]}" "${OURS[@]}" "${COLLECTIVES[@]}" "$@" 2>&1 |
		tee "$log" | grep -v 'NCCL INFO'
	status=${PIPESTATUS[0]}
	((status != 77)) || exit 77
	((status == 0)) || fail "rank $RANK ended with status $status; $log has NCCL's log"
	"$NCCL_TESTS/read_log.py" --inside "$log" || fail "NCCL did not use our network"
}

# mesh_of triangle|k4|local: makes the nodes and fills NODES.
mesh_of() {
	NODES=(a b c)
	[[ $1 != local ]] || return 0
	mesh_init
	case $1 in
	triangle)
		mesh_up triangle
		;;
	k4)
		NODES=(a b c d)
		mesh_node "${NODES[@]}"
		mesh_cabled ab ac ad bc bd cd
		;;
	esac
}

# rank_spawn NODE LOG COMMAND...: in the background; the node is a name only if there are none.
rank_spawn() {
	local node=$1 log=$2

	if [[ $MESH != local ]]; then
		mesh_spawn "$@"
		return
	fi
	shift 2
	NCCL_MESH_NODE_NAME=$node NCCL_MESH_NICS=lo "$@" >"$log" 2>&1 </dev/null &
	MESH_SPAWNED=$!
}

# start_ranks RUN SETTING... -- COMMAND...: it as one rank in each of NODES; status in RANKS_STATUS.
start_ranks() {
	local folder=$LOGS/$1 settings=(NCCL_SOCKET_IFNAME=mgmt0) pids=() first rank node

	shift
	if [[ $MESH == local ]]; then
		first=127.0.0.1
		settings=(NCCL_SOCKET_IFNAME=lo)
	else
		first=$(mesh_mgmt_addr "${NODES[0]}")
	fi
	while [[ $1 != -- ]]; do
		settings+=("$1")
		shift
	done
	shift
	mkdir -p "$folder"
	RANKS_STATUS=()
	for rank in "${!NODES[@]}"; do
		node=${NODES[rank]}
		rank_spawn "$node" "$folder/rank$rank.out" env "${COMMON[@]}" "${SHARED[@]}" \
			NCCL_HOSTID="$node" RANK="$rank" WORLD_SIZE="${#NODES[@]}" \
			LOCAL_RANK="$rank" MASTER_ADDR="$first" MASTER_PORT=29500 "${settings[@]}" \
			timeout -k 10 "${TEST_TIMEOUT:-3000}" "$@"
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

# The victim is rank 1: killed (137); the other ranks have to end well.
run_death() {
	local run=$1 rank

	shift
	start_ranks "$run" "${OURS[@]}" -- "${COLLECTIVES[@]}" "$@" --tests death --victim 1
	for rank in "${!RANKS_STATUS[@]}"; do
		((RANKS_STATUS[rank] == (rank == 1 ? 137 : 0))) ||
			{ ranks_show "$LOGS/$run"; fail "$run: ${RANKS_STATUS[*]}"; }
	done
	cat "$LOGS/$run"/rank*.out | grep 'after rank 1 died'
}

# PyTorch brings its own NCCL, which may be another version.
run_pytorch() {
	if [[ ${NO_PYTORCH:-} ]] ||
		! python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
		echo "skipped: PyTorch"
		return
	fi
	run_checked "$MESH-pytorch" Mesh "${OURS[@]}" -- \
		python3 "$MESH_TOP/examples/all_reduce.py" --max-mib 64
}

run_mesh() (
	local MESH=$1

	shift
	mesh_of "$MESH"
	echo "==== $MESH: ranks on ${NODES[*]}"
	run_checked "$MESH" Mesh "${OURS[@]}" -- "${COLLECTIVES[@]}" --tests $TESTS "$@"
	run_death "$MESH-death" "$@"
	run_pytorch
	[[ ! ${NO_RATIO:-} ]] || return 0
	run_checked "$MESH-socket" Socket NCCL_NET_PLUGIN=none NCCL_NET=Socket -- \
		"${COLLECTIVES[@]}" --tests operations "$@"
	"$NCCL_TESTS/ratio.py" "$LOGS/$MESH/rank0.out" "$LOGS/$MESH-socket/rank0.out"
)

# The meshes that can be made on this machine.
default_meshes() {
	local reason

	if reason=$(mesh_init); then
		echo triangle k4
	else
		echo "no namespaces (${reason#SKIP: }): ranks talk over the loopback interface" >&2
		echo local
	fi
}

check_shared_memory() {
	local free

	free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -1)
	((${free:-0} >= SHM_MIN_KB)) ||
		echo "/dev/shm has ${free:-no} KB free, which NCCL may find too little:" \
			"mount -o remount,size=1G /dev/shm, or docker run --shm-size=1g" >&2
}

main() {
	local meshes=() mesh detected

	if [[ ${1:-} == @(-h|--help) ]]; then
		sed -n '/^# run.sh/,/^[^#]/s/^# \{0,1\}//p' "$NCCL_TESTS/run.sh"
		return
	fi
	# torchrun takes a '--' for its own.
	while (($#)) && [[ $1 != -* ]]; do
		[[ $1 =~ ^(triangle|k4|local)$ ]] ||
			fail "usage: $0 [triangle|k4|local]... [-- ARGUMENT...]"
		meshes+=("$1")
		shift
	done
	[[ ${1:-} != -- ]] || shift
	[[ -x $PROGRAM ]] || fail "$PROGRAM is not built"
	mapfile -t LIBRARY < <(library_arguments)
	COLLECTIVES=("$PROGRAM" "${LIBRARY[@]}")
	LD_LIBRARY_PATH=$(library_path)
	export LD_LIBRARY_PATH
	launcher_detect
	detected=$?
	((detected != 2)) || exit 1
	if ((detected == 0)); then
		run_as_rank "$@"
		return
	fi
	"$PROGRAM" --check-gpu || exit
	check_shared_memory
	((${#meshes[@]})) || read -ra meshes <<<"$(default_meshes)"
	rm -rf "$LOGS"
	for mesh in "${meshes[@]}"; do
		run_mesh "$mesh" "$@" || exit
	done
	echo "PASS: ${meshes[*]}; the logs are in $LOGS"
}

main "$@"
