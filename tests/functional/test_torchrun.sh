#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_torchrun.sh - torchrun starts the example and fabric_pingpong on a triangle as
# docs/guides/pytorch.md says, on the CPU.
# seconds: 50
. "$(dirname "${BASH_SOURCE[0]}")/guide.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launchers.sh"

# on_all FILE: typed on every node, with the node's rank, which is also in NODE_RANK; what each
# prints is in FILE.NODE.
on_all() {
	local rank node pids=() status=()

	for rank in "${!NODES[@]}"; do
		node=${NODES[rank]}
		sed "s/--node_rank 0/--node_rank $rank/" "$1" >"$1.$node.sh"
		mesh_spawn "$node" "$1.$node" "$NAMED" env NODE_RANK="$rank" \
			timeout -k 5 "$RANKS_TIMEOUT" bash "$1.$node.sh"
		pids+=("$MESH_SPAWNED")
	done
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}"
		status+=($?)
	done
	[[ ${status[*]} == "0 0 0" ]] || { tail -n 40 "$1".n?; fail "$1: ${status[*]}"; }
}

# pairs_are_right FILE: what torchrun let through of fabric_pingpong's table.
pairs_are_right() {
	sed 's/^\[[^]]*\]://' "$1" >"$1.table"
	launchers_table "$1.table"
}

launchers_torch || skip "no python3 here has PyTorch (Debian, Ubuntu: python3-torch)"
launchers_command torchrun python3 -m torch.distributed.run
mesh_init
launchers_up
# PyTorch 1.13 with Python 3.11, which Debian 12 has, does not understand its own default, 0.
export PET_REDIRECTS=1 PET_TEE=1
[[ $(guide_blocks pytorch.md "$OUT" | wc -l) == 2 ]] || fail "the guide has not two blocks"
launchers_shorten "$OUT/block00"
on_all "$OUT/block00"
pairs_are_right "$OUT/block00.n1"
note "fabric_pingpong: each pair by its own cable"
sed -i 's/all_reduce.py/& --cpu --max-mib 1/' "$OUT/block01"
on_all "$OUT/block01"
grep -qE '1048576 +[0-9.]+ +[0-9.]+$' "$OUT/block01.n1" ||
	{ cat "$OUT/block01.n1"; fail "no line for 1 MiB"; }
note "the example on the CPU: $(grep -o 'PyTorch.*' "$OUT/block01.n1")"
# Kubeflow's TrainJob passes it in variables only.
cat >"$OUT/trainjob" <<-EOF
	export PET_NNODES=3 PET_NPROC_PER_NODE=1 PET_NODE_RANK=\$NODE_RANK
	export PET_MASTER_ADDR=n1 PET_MASTER_PORT=29400
	torchrun --no_python fabric_pingpong
EOF
launchers_shorten "$OUT/trainjob"
on_all "$OUT/trainjob"
pairs_are_right "$OUT/trainjob.n1"
note "fabric_pingpong in a TrainJob's environment: each pair by its own cable"
