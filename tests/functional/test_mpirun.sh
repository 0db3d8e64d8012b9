#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_mpirun.sh - Open MPI and MPICH start fabric_pingpong on a triangle as in
# docs/guides/mpirun.md.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/guide.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launchers.sh"

# In ssh's place: [OPTION]... NODE COMMAND..., with an environment of its own.
write_ssh() {
	cat >"$OUT/ssh" <<-EOF
		#!/bin/bash
		MESH_PREFIX=$MESH_PREFIX
		$(declare -f mesh_exec)
		while [[ \$1 == -* ]]; do shift; done
		mesh_exec "\$1" "$NAMED" env -i HOME=/root PATH=/usr/bin:/bin sh -c "\${*:2}"
	EOF
	chmod +x "$OUT/ssh"
}

# try_block WHICH FILE: the guide's command, which WHICH of the MPIs understands.
try_block() {
	if ! command -v "mpirun.$1" >/dev/null; then
		note "left, as there is no mpirun.$1: $(head -1 "$2")"
		return
	fi
	launchers_command mpirun "mpirun.$1"
	launchers_shorten "$2"
	on n1 "$NAMED" timeout -k 5 "$RANKS_TIMEOUT" bash "$2" >"$2.out" 2>&1 ||
		{ cat "$2.out"; fail "$1"; }
	launchers_table "$2.out"
	note "$1: each pair by its own cable"
	((++tried))
}

command -v mpirun.openmpi mpirun.mpich >/dev/null ||
	skip "neither Open MPI nor MPICH is here (Debian, Ubuntu: openmpi-bin, mpich)"
mesh_init
launchers_up
write_ssh
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=$OUT/ssh
export HYDRA_LAUNCHER=ssh HYDRA_LAUNCHER_EXEC=$OUT/ssh
n=0 tried=0
while read -r -u 3 which; do
	try_block "$which" "$OUT/$(printf 'block%02d' $n)"
	((++n))
done 3< <(guide_blocks mpirun.md "$OUT")
((n == 2 && tried > 0)) || fail "$n blocks were found, $tried tried"
