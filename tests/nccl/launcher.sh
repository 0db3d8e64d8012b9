# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# launcher.sh - which launcher started this process, and which rank it is. To be sourced.

# launcher_detect: sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and LAUNCHER.
# Status 1 if no launcher started us as a rank; 2, with the reason on stderr, if one is missing.
launcher_detect() {
	LAUNCHER=none
	if [[ ${RANK:-} && ${WORLD_SIZE:-} ]]; then
		# torchrun, PyTorch's operator for Kubernetes, and many wrappers.
		LAUNCHER=torchrun
	elif [[ ${OMPI_COMM_WORLD_SIZE:-} ]]; then
		# Before Slurm: mpirun inside a Slurm job has Slurm's variables, too.
		LAUNCHER=mpirun
		RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE
		LOCAL_RANK=${OMPI_COMM_WORLD_LOCAL_RANK:-0}
	elif [[ ${SLURM_PROCID:-} && ${SLURM_STEP_NUM_TASKS:-${SLURM_NTASKS:-}} ]]; then
		LAUNCHER=slurm
		RANK=$SLURM_PROCID WORLD_SIZE=${SLURM_STEP_NUM_TASKS:-$SLURM_NTASKS}
		LOCAL_RANK=${SLURM_LOCALID:-0}
	elif [[ ${PMI_SIZE:-} && ${PMI_RANK:-} ]]; then
		# MPICH, Intel MPI (hydra).
		LAUNCHER=mpirun
		RANK=$PMI_RANK WORLD_SIZE=$PMI_SIZE LOCAL_RANK=${MPI_LOCALRANKID:-0}
	else
		return 1
	fi
	LOCAL_RANK=${LOCAL_RANK:-0}
	MASTER_PORT=${MASTER_PORT:-29500}
	launcher_master || return 2
	export RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
}

# The first node's name, unless MASTER_ADDR is set.
launcher_master() {
	[[ ! ${MASTER_ADDR:-} ]] || return 0
	if [[ $LAUNCHER == slurm && ${SLURM_STEP_NODELIST:-${SLURM_JOB_NODELIST:-}} ]] &&
		command -v scontrol >/dev/null; then
		MASTER_ADDR=$(scontrol show hostnames \
			"${SLURM_STEP_NODELIST:-$SLURM_JOB_NODELIST}" | head -1)
	elif [[ ${OMPI_COMM_WORLD_LOCAL_SIZE:-} == "$WORLD_SIZE" ]]; then
		MASTER_ADDR=127.0.0.1
	fi
	[[ ! ${MASTER_ADDR:-} ]] || return 0
	echo "$LAUNCHER does not say where rank 0 runs: set MASTER_ADDR to that node's address" >&2
	return 1
}
