#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_slurm.sh - a Slurm of our own, one slurmd in each node of a triangle, runs the jobs that
# docs/guides/slurm.md describes.
#
# Nothing of the machine's own Slurm or munge is used or changed.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/guide.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launchers.sh"

export SLURM_CONF=$OUT/slurm.conf

write_configuration() {
	local node

	head -c 128 /dev/urandom >"$OUT/munge.key"
	chmod 400 "$OUT/munge.key"
	# slurmd insists on a cgroup plugin, though nothing here uses cgroups.
	echo CgroupPlugin=cgroup/v1 >"$OUT/cgroup.conf"
	cat >"$SLURM_CONF" <<-EOF
		ClusterName=mesh
		SlurmctldHost=mgmt(10.77.0.254)
		SlurmUser=root
		AuthInfo=socket=$OUT/munge.socket
		StateSaveLocation=$OUT
		SlurmdSpoolDir=$OUT/spool-%n
		SlurmctldPidFile=$OUT/slurmctld.pid
		SlurmdPidFile=$OUT/slurmd-%n.pid
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SchedulerType=sched/builtin
		PartitionName=mesh Nodes=ALL Default=YES
	EOF
	for node in "${NODES[@]}"; do
		echo "NodeName=$node NodeAddr=$(mesh_mgmt_addr "$node")"
	done >>"$SLURM_CONF"
}

start_slurm() {
	local node

	# --force: munged otherwise refuses folders that others may write to.
	mesh_spawn mgmt "$OUT/munged.log" "$NAMED" munged --foreground --force --syslog \
		--socket="$OUT/munge.socket" --key-file="$OUT/munge.key" \
		--pid-file="$OUT/munge.pid" --seed-file="$OUT/munge.seed"
	mesh_spawn mgmt "$OUT/slurmctld.log" "$NAMED" slurmctld -D -i
	for node in "${NODES[@]}"; do
		mesh_spawn "$node" "$OUT/slurmd-$node.log" "$NAMED" slurmd -D
	done
	wait_for "[[ \$(on mgmt sinfo -h -t idle -o %D 2>/dev/null) == 3 ]]" 60 ||
		{ tail "$OUT"/munged.log "$OUT"/slurm*.log; fail "the nodes do not come up"; }
}

# run_job FILE: submits it; it has to end well. What it prints is in FILE.out.
run_job() {
	local id status

	id=$(on mgmt sbatch --parsable -o "$1.out" "$1") || fail "sbatch refuses $1"
	wait_for "[[ ! \$(on mgmt squeue -h -j $id) ]]" 120 ||
		{ cat "$1.out"; fail "job $id does not end"; }
	status=$(on mgmt scontrol show job "$id" | sed -n 's/.* ExitCode=\([0-9]*\):.*/\1/p')
	[[ $status == 0 ]] || { cat "$1.out"; fail "$1 ended with status $status"; }
}

for tool in munged slurmctld slurmd sbatch; do
	command -v $tool >/dev/null || skip "'$tool' is missing (Debian, Ubuntu: slurm-wlm)"
done
# A Unix socket's path has at most 107 bytes, and slurmd's are below here.
((${#OUT} <= 80)) || skip "'$OUT' is too long a path for Slurm's sockets"
launchers_torch && torch=1 || torch=0
mesh_init
launchers_up
write_configuration
start_slurm
[[ $(guide_blocks slurm.md "$OUT") == job$'\n'job ]] || fail "the guide has not the two jobs"
launchers_shorten "$OUT/block00"
run_job "$OUT/block00"
launchers_table "$OUT/block00.out"
note "fabric_pingpong's job: each pair by its own cable"
if ((torch)); then
	sed -i 's/all_reduce.py/& --cpu --max-mib 1/' "$OUT/block01"
	run_job "$OUT/block01"
	note "PyTorch's job, on the CPU: $(grep -o 'PyTorch.*' "$OUT/block01.out")"
else
	note "left PyTorch's job, as there is no PyTorch here"
fi
