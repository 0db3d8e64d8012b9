#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_rdma_words.sh - what goes wrong with RDMA is reported in words, and in time.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

mesh_init
pair_up

# A container that was given no /dev/infiniband: TCP is used instead, and the log says why.
on b busybox mv /dev/infiniband/rdma_cm /dev/infiniband/hidden 2>/dev/null ||
	fail "cannot hide rdma_cm"
on b "$MESH_BUILD/fi_mesh" nics >"$OUT/no_rdma_cm" 2>&1
grep -q '/dev/infiniband/rdma_cm cannot be opened' "$OUT/no_rdma_cm" ||
	{ cat "$OUT/no_rdma_cm"; fail "no message about rdma_cm"; }
on b busybox mv /dev/infiniband/hidden /dev/infiniband/rdma_cm
note "no rdma_cm: said"

# Too little locked memory, and not the privilege that root has outside of containers.
# shellcheck disable=SC2016 # for the inner shell
on b bash -c 'ulimit -l 256; exec timeout 60 setpriv --bounding-set -ipc_lock \
	--inh-caps -ipc_lock "$@"' - "$MESH_BUILD/functional/verbs_fence" \
	receiver ba 10.77.1.2/24 rxe_ba "$OUT" close >"$OUT/memlock" 2>&1
grep -q 'the limit of 256 KiB' "$OUT/memlock" ||
	{ cat "$OUT/memlock"; fail "no message about memlock"; }
note "memlock: said"

# A firewall that lets TCP pass.
roce_lose a ab
RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=10) RANKS_TIMEOUT=300
run_ranks "$OUT/firewall" a b -- --timeout 200 --verbose --sizes 64K --iters 10 --repeat 1
said firewall 'TCP reaches the peer on this link and RDMA does not.*UDP port 4791'
note "firewall: said"
