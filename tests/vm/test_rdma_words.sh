#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_rdma_words.sh - what goes wrong with RDMA is reported in words, and in time.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

mesh_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
rdma_up

# drop_roce NODE NIC: what it sends to RoCE's UDP port is lost, all else passes.
drop_roce() {
	ip netns exec "$MESH_PREFIX$1" sh -ec "
		tc qdisc add dev $2 root handle 1: prio
		tc qdisc add dev $2 parent 1:3 netem loss 100%
		tc filter add dev $2 parent 1: protocol ip u32 match ip protocol 17 0xff \
			match ip dport 4791 0xffff flowid 1:3" || fail "cannot drop packets"
}

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
grep -q 'may lock only 256 KiB' "$OUT/memlock" ||
	{ cat "$OUT/memlock"; fail "no message about memlock"; }
note "memlock: said"

# A firewall that lets TCP pass.
drop_roce a ab
RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=10) RANKS_TIMEOUT=300
run_ranks "$OUT/firewall" a b -- --timeout 200 --verbose --sizes 64K --iters 10 --repeat 1
said firewall 'TCP reaches the peer on this link and RDMA does not.*UDP port 4791'
note "firewall: said"
