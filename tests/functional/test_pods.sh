#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_pods.sh - packaging/kubernetes/pytorchjob.yaml on a triangle of nodes, two of its pods on one
# node, two GPUs a pod: every rank reaches every other over the cables, or within its node.
#
# A pod is a namespace with a pod network (eth0) and the macvlan NICs that networks.yaml asks for.
# The command is the manifest's; where PyTorch is missing, a script takes torchrun's place.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

MANIFESTS=$MESH_TOP/packaging/kubernetes
OUT=$MESH_BUILD/functional/test_pods
PORTS=(enp1s0f0np0 enp1s0f1np1)
# Four pods, though the job asks for three: both ways to share a node.
PODS=(pa pb pc pc2)
declare -A HOST=([pa]=a [pb]=b [pc]=c [pc2]=c)

manifest() { "$MESH_TOP/tests/functional/pod_manifest.py" "$1" "$MANIFESTS"; }

# The nodes' cables carry no addresses but link-local ones.
make_hosts() {
	mesh_node a b c
	mesh_link a "${PORTS[0]}" - b "${PORTS[0]}" -
	mesh_link a "${PORTS[1]}" - c "${PORTS[0]}" -
	mesh_link b "${PORTS[1]}" - c "${PORTS[1]}" -
}

# make_pod POD: as Multus does with its pod network and the attachments.
make_pod() {
	local name type mode master

	mesh_node "$1"
	ip -n "$MESH_PREFIX$1" link set mgmt0 down
	ip -n "$MESH_PREFIX$1" link set mgmt0 name eth0
	ip -n "$MESH_PREFIX$1" link set eth0 up
	ip -n "$MESH_PREFIX$1" route add default via 10.77.0.254
	while read -r name type mode master; do
		ip -n "$MESH_PREFIX${HOST[$1]}" link add "$name" link "$master" \
			netns "$MESH_PREFIX$1" type "$type" mode "$mode" || fail "$1 $name"
		ip -n "$MESH_PREFIX$1" link set "$name" up
		mesh_await_link "$MESH_PREFIX$1" "$name"
	done < <(manifest networks)
}

# torchrun as far as this job needs it: a rank for each GPU.
make_torchrun() {
	mkdir -p "$OUT/bin"
	cat >"$OUT/bin/torchrun" <<-'EOF'
		#!/usr/bin/env bash
		while (($#)); do
			case $1 in
			--no_python) shift; break ;;
			--nnodes) nodes=$2 ;;
			--node_rank) node=$2 ;;
			--nproc_per_node) each=$2 ;;
			--master_addr) export MASTER_ADDR=$2 ;;
			--master_port) export MASTER_PORT=$2 ;;
			*) echo "torchrun: $1" >&2; exit 2 ;;
			esac
			shift 2
		done
		for ((i = 0; i < each; i++)); do
			RANK=$((node * each + i)) LOCAL_RANK=$i WORLD_SIZE=$((nodes * each)) "$@" &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid" || status=1; done
		exit ${status:-0}
	EOF
	chmod +x "$OUT/bin/torchrun"
}

# run_job: each pod as the operator starts it; status in RANKS_STATUS.
run_job() {
	local command variables pod n pids=()

	mapfile -d '' -t command < <(manifest command)
	mapfile -t variables < <(manifest env)
	((${#command[@]})) || fail "the manifest has no command"
	# 56 pairs: small messages are enough.
	command[-1]+=" --check-max 8 --channels 1"
	for n in "${!PODS[@]}"; do
		pod=${PODS[n]}
		mesh_spawn "$pod" "$OUT/rank$n.out" env "${variables[@]}" \
			PATH="$OUT/bin:$MESH_BUILD:$PATH" NCCL_MESH_NODE_NAME="$pod" \
			RANK="$n" WORLD_SIZE="${#PODS[@]}" MASTER_PORT=23456 \
			MASTER_ADDR="$(mesh_mgmt_addr "${PODS[0]}")" \
			timeout -k 5 "$RANKS_TIMEOUT" "${command[@]}"
		pids+=("$MESH_SPAWNED")
	done
	for n in "${!pids[@]}"; do
		wait "${pids[n]}"
		RANKS_STATUS[n]=$?
	done
}

python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is missing (scripts/install-deps.sh)"
mesh_init
rm -rf "$OUT"
mkdir -p "$OUT"
manifest check || fail "the manifests do not fit each other"
make_hosts
make_torchrun
for pod in "${PODS[@]}"; do make_pod "$pod"; done
RANKS_STATUS=()
run_job
[[ ${RANKS_STATUS[*]} == "0 0 0 0" ]] || { ranks_show "$OUT"; fail "${RANKS_STATUS[*]}"; }
[[ $(grep -cE '^[0-7] \(p.* ok$' "$OUT/rank0.out") == 56 ]] ||
	{ cat "$OUT/rank0.out"; fail "not every pair is ok"; }
for pair in "0 .pa. +2 .pb. +mesh0" "0 .pa. +4 .pc. +mesh1" "0 .pa. +6 .pc2. +mesh1" \
	"2 .pb. +6 .pc2. +mesh1" "4 .pc. +0 .pa. +mesh0" "4 .pc. +6 .pc2. +mesh0"; do
	grep -qE "^$pair " "$OUT/rank0.out" || { cat "$OUT/rank0.out"; fail "no pair $pair"; }
done
note "8 ranks in 4 pods on 3 nodes: every pair by the right cable, or inside its node"
