#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_real_nccl.sh - NCCL's own host code over the plugin, without a GPU: it finds and loads the
# plugin, and its proxy threads connect every rank with every other on the triangle and on K4,
# again and again, split and twice at once; the same on a ring, a line and a graph, where neighbours
# relay; on a ring of four the first all-reduce of 4 bytes keeps to the cables if the tuner has a
# plan; a rank that dies, at the end of a line or in its middle, ends the others' communicators.
#
# tests/nccl/fake_gpu stands in for the CUDA runtime, so kernels do not run and no data moves,
# unless the library does their work on the CPU and says so by fake_gpu_kernels(). Then all
# operations run on the ring, the line and the graph, and while cables flap, and every value is
# checked.
# Needs an NCCL that takes its CUDA runtime from a shared library (built with CUDARTLIB=cudart);
# NCCL_LIBRARY names it. NVIDIA's own packages have the runtime inside: they cannot be used.
#	ONLY=flapping test_real_nccl.sh	one of triangle, k4, ring, relayed, flapping, death
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

FAKE=$MESH_BUILD/nccl/fake
COLLECTIVES=$MESH_BUILD/nccl/nccl_collectives
OUT=$MESH_BUILD/functional/test_real_nccl
LIMIT=240
# Communicators made one after another. On the triangle each connects 24 times in each rank.
REPEATS=${REPEATS:-10}
# The largest size where data moves, and how often each operation is repeated while cables flap.
MAX=${MAX:-256K}
FLAPPING_ITERATIONS=${FLAPPING_ITERATIONS:-5}

find_library() {
	local file

	for file in "${NCCL_LIBRARY:-}" "${NCCL_HOME:-/nonexistent}/lib/libnccl.so.2" \
		"${CUDA_HOME:-/nonexistent}/lib/libnccl.so.2" \
		"$(ldconfig -p 2>/dev/null | awk '/libnccl\.so\.2 /{print $NF; exit}')"; do
		[[ -f $file ]] || continue
		if readelf -d "$file" | grep -q 'NEEDED.*libcudart'; then
			echo "$file"
			return
		fi
	done
	return 1
}

# kernels_run: the library does the work of its kernels on the CPU, so that data moves.
kernels_run() { readelf --wide --dyn-syms "$LIBRARY" | grep -q 'UND fake_gpu_kernels'; }

# nccl_ranks RUN NODE... -- ARGUMENT...: nccl_collectives as one rank in each node; status in
# RANKS_STATUS, output in $OUT/RUN/rankN.out.
nccl_ranks() {
	local run=$1 nodes=() pids=() rank

	shift
	while [[ $1 != -- ]]; do
		nodes+=("$1")
		shift
	done
	shift
	mkdir -p "$OUT/$run"
	RANKS_STATUS=()
	for rank in "${!nodes[@]}"; do
		mesh_spawn "${nodes[rank]}" "$OUT/$run/rank$rank.out" env \
			RANK="$rank" WORLD_SIZE="${#nodes[@]}" MASTER_PORT=29500 \
			MASTER_ADDR="$(mesh_mgmt_addr "${nodes[0]}")" \
			NCCL_HOSTID="${nodes[rank]}" NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=mgmt0 \
			NCCL_NET_PLUGIN=mesh NCCL_NET_PLUGIN_REF_COUNT=1 \
			NCCL_RAS_ENABLE=0 "${SETTINGS[@]}" \
			LD_LIBRARY_PATH="$FAKE:$MESH_BUILD:$(dirname "$LIBRARY")" \
			timeout -k 5 $LIMIT "$COLLECTIVES" "${IDLE[@]}" --nccl "$LIBRARY" "$@"
		pids+=("$MESH_SPAWNED")
	done
	for rank in "${!pids[@]}"; do
		wait "${pids[rank]}"
		RANKS_STATUS[rank]=$?
	done
}

# nccl_pass RUN NODE... -- ARGUMENT...: all ranks end well, and every communicator used us.
nccl_pass() {
	local run=$1

	nccl_ranks "$@"
	[[ ${RANKS_STATUS[*]} =~ ^(0 ?)+$ ]] ||
		{ ranks_show "$OUT/$run"; fail "$run: ${RANKS_STATUS[*]}"; }
	python3 "$MESH_TOP/tests/nccl/read_log.py" "$OUT/$run"/rank*.out ||
		fail "$run: another network was used"
}

# version_at_least MAJOR.MINOR: of the library, as it says itself in the triangle's log.
version_at_least() {
	local have

	have=$(sed -n 's/^# NCCL \([0-9.]*\),.*/\1/p' "$OUT/triangle/rank0.out")
	printf '%s\n' "$1" "$have" | sort -CV
}

# connected RUN FROM TO NIC: FROM's plugin says that it reached TO through this NIC.
connected() {
	grep -q "path: from=$2 to=$3 nic=$4 " "$OUT/$1"/rank*.out ||
		fail "$1: no connection from $2 to $3 by $4"
}

triangle() {
	local SETTINGS=(NCCL_RUNTIME_CONNECT=0 NCCL_MAX_NCHANNELS=4) pair

	nccl_pass triangle a b c -- --tests repeat,split,two --repeats "$REPEATS"
	for pair in "a b" "b c" "c a"; do
		# shellcheck disable=SC2086 # two words
		set -- $pair
		connected triangle "$1" "$2" "$1$2"
	done
	note "triangle: every pair by its own cable"
}

k4() {
	local SETTINGS=(NCCL_RUNTIME_CONNECT=0 NCCL_MAX_NCHANNELS=6) i j cable ways

	mesh_node d
	mesh_cabled ad bd cd
	nccl_pass k4 a b c d -- --tests two
	# Rings and trees need not use every pair of four; those that they use are right.
	for i in a b c d; do
		for j in a b c d; do
			cable=$i$j
			! cat "$OUT"/k4/rank?.out | grep -h "path: from=$i to=$j nic=$i" |
				grep -qv " nic=$cable " ||
				fail "k4: $i reached $j by another cable than $cable"
		done
	done
	ways=$(cat "$OUT"/k4/rank*.out | grep -o 'path: from=. to=.' | sort -u | wc -l)
	note "k4: $ways of 12 ways, each by its own cable"
}

# dies RUN VICTIM NODE...: receives are posted and then a rank ends: NCCL learns of it from the
# plugin, in every other rank.
dies() {
	local run=$1 victim=$2 wanted=() node

	nccl_ranks "$run" "${@:3}" -- --tests death --victim "$victim" --bound 30
	for node in "${@:3}"; do
		wanted+=(0)
	done
	wanted[victim]=137
	[[ ${RANKS_STATUS[*]} == "${wanted[*]}" ]] ||
		{ ranks_show "$OUT/$run"; fail "$run: ${RANKS_STATUS[*]}"; }
	note "$run: $(cat "$OUT/$run"/rank*.out | grep "after rank $victim died" | paste -sd';')"
}

death() {
	local SETTINGS=(NCCL_RUNTIME_CONNECT=0 NCCL_MAX_NCHANNELS=4)

	dies death 1 a b c
}

# everything RUN NODE...: communicators one after another, split, and two at once; where data moves,
# every operation as well.
everything() {
	local run=$1 tests=repeat,split,two

	shift
	! kernels_run || tests=first,operations,split,two,repeat,registered
	nccl_pass "$run" "$@" -- --tests $tests --repeats 3 --iterations 1 --max "$MAX"
	grep -qhE 'path: .* via=[a-z](,| )' "$OUT/$run"/rank*.out ||
		fail "$run: no pair was relayed"
	note "$run: $tests"
}

# NCCL's own choice of algorithm where not every pair has a cable. Without virtual memory NCCL
# connects rings, trees and PAT at once.
relayed() {
	# NCCL counts the channels of a pair by the NICs of one node alone, and fails if the two
	# ends of ncclSend differ (docs/troubleshooting.md).
	local SETTINGS=(NCCL_CUMEM_ENABLE=0 NCCL_NCHANNELS_PER_NET_PEER=2)

	mesh_node e f g h i j k l m n o p q v w
	mesh_cabled ef fg gh he
	everything ring4 e f g h
	mesh_cabled ij jk kl lm
	everything line5 i j k l m
	mesh_cabled no oq nw pq qv vw wp
	everything graph n o p q v w
	# The relay in the middle.
	SETTINGS+=(NCCL_MAX_NCHANNELS=4)
	dies line5-death 2 i j k l m
}

# far NODE,NIC: the other end of its cable.
far() {
	local other=${MESH_PEER["${1/,/ }"]}

	echo "${other/ /,}"
}

# link_set up|down NODE,NIC...
link_set() {
	local end

	for end in "${@:2}"; do
		ip -n "$MESH_PREFIX${end%,*}" link set dev "${end#*,}" "$1" || fail "$1: $end"
	done
}

# flap NODE,NIC...: one cable after another loses its link, by one end or by both, and gets it back
# after 10 ms to 2 s, log-uniform. Writes how often to $OUT/flaps.
flap() {
	local count=0 cable ends

	while cable=${*:RANDOM % $# + 1:1}; do
		ends=("$cable" "$(far "$cable")")
		((RANDOM % 3)) || ends=("${ends[RANDOM % 2]}")
		link_set down "${ends[@]}"
		pause "$(awk -v r=$RANDOM 'BEGIN { print 0.01 * exp(r / 32767 * log(200)) }')"
		link_set up "${ends[@]}"
		echo $((++count)) >"$OUT/flaps"
		pause "$(awk -v r=$RANDOM 'BEGIN { print 0.05 * exp(r / 32767 * log(40)) }')"
	done
}

# flapped RUN NODE... -- NODE,NIC...: every operation while these cables flap.
flapped() {
	local run=$1 nodes=() flapper end

	shift
	while [[ $1 != -- ]]; do
		nodes+=("$1")
		shift
	done
	shift
	flap "$@" &
	flapper=$!
	nccl_pass "$run" "${nodes[@]}" -- --tests first,operations,split,two --max "$MAX" \
		--iterations "$FLAPPING_ITERATIONS"
	kill "$flapper"
	wait "$flapper" 2>/dev/null
	for end in "$@"; do
		link_set up "$end" "$(far "$end")"
		mesh_await_link "$MESH_PREFIX${end%,*}" "${end#*,}"
	done
	note "$run: all values right, links lost: $(cat "$OUT/flaps")"
}

flapping() {
	local SETTINGS=(NCCL_CUMEM_ENABLE=0)

	if ! kernels_run; then
		note "flapping: no data moves with this library"
		return
	fi
	flapped flapping a b c -- a,ab b,bc c,ca
	mesh_node x y
	mesh_link x x1 10.77.81.1/30 y y1 10.77.81.2/30
	mesh_link x x2 10.77.82.1/30 y y2 10.77.82.2/30
	flapped flapping2 x y -- x,x1 x,x2
}

# A ring of four without relays: NCCL would take a tree for 4 bytes, which needs a cable across.
# With the plan the tuner keeps it to the ring, and only that is connected. With relays the tree
# works, too.
ring() {
	local SETTINGS=(NCCL_RUNTIME_CONNECT=1 NCCL_CUMEM_ENABLE=1 NCCL_CUMEM_HOST_ENABLE=0
		NCCL_MAX_NCHANNELS=2 "NCCL_DEBUG_SUBSYS=INIT,NET,TUNING") pair
	local first=(r s t u -- --tests first)

	if ! version_at_least 2.22; then
		note "ring: before 2.22 NCCL connects trees in any case"
		return
	fi
	mesh_node r s t u
	mesh_cabled rs st tu ur
	nccl_pass ring-relayed "${first[@]}"
	grep -qh 'path: .* via=[rstu] ' "$OUT"/ring-relayed/rank*.out ||
		fail "ring: NCCL asked for no pair across"
	SETTINGS+=(NCCL_MESH_RELAY=off)
	nccl_ranks ring-without-plan "${first[@]}"
	grep -qh 'WARN.*no common subnet' "$OUT"/ring-without-plan/rank*.out ||
		{ ranks_show "$OUT/ring-without-plan"; fail "ring: the test shows nothing"; }
	printf '%s\n' "r s" "s t" "t u" "u r" >"$OUT/ring.plan"
	SETTINGS+=("NCCL_MESH_PLAN=$OUT/ring.plan")
	nccl_pass ring "${first[@]}"
	# One rank says what all have chosen.
	grep -qh 'AllReduce: 4 Bytes -> Algo RING' "$OUT"/ring/rank*.out ||
		fail "ring: $(grep -h 'AllReduce: ' "$OUT"/ring/rank*.out)"
	for pair in "r s" "s t" "t u" "u r"; do
		# shellcheck disable=SC2086 # two words
		set -- $pair
		connected ring "$1" "$2" "$1$2"
	done
	note "ring: $(grep -ho 'tuner: [0-9].*' "$OUT/ring/rank0.out" | tail -n 1)"
}

[[ -x $COLLECTIVES ]] || fail "$COLLECTIVES is not built"
LIBRARY=$(find_library) ||
	skip "no libnccl.so.2 that takes its CUDA runtime from a shared library (NCCL_LIBRARY)"
mesh_init
rm -rf "$OUT"
mesh_up triangle
IDLE=()
kernels_run || IDLE=(--idle-gpu)
note "$LIBRARY"
for part in triangle k4 ring relayed flapping death; do
	[[ " ${ONLY:-$part} " != *" $part "* ]] || $part
done
