#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_many_neighbours.sh - 16 nodes on one switched subnet, where every node is everybody's
# neighbour, and 64 ranks on one of them: each question is answered by each node, once, and a start
# of many ranks at the same time costs a bounded number of datagrams.
# alone: its 80 processes starve what runs beside them, and take 8 s by themselves
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

NODES=16
RANKS=64
# Of a rank that has no answer yet (asking.c).
QUESTIONS=3
slow=
[[ $MESH_BUILD != *sanitize* ]] || { NODES=6; RANKS=12; slow=1; }

# rank NODE NUMBER END: a process that stays until END, and connects to no other.
rank() {
	play "$1" "rank-$1-$2" <<-END
		listen 0 $FAULTS/handle-$1-$2
		limit 300000
		await $FAULTS/end-$3
		close-listen 0
	END
}

# listening NODE-NUMBER...: waits for their handles.
listening() {
	local name

	for name in "$@"; do arrives "handle-$name"; done
}

# sent: UDP datagrams that all nodes have sent together.
sent() {
	local node

	for node in "${names[@]}"; do
		ip netns exec "$(mesh_ns "$node")" cat /proc/net/snmp6
	done | awk '$1 == "Udp6OutDatagrams" { n += $2 } END { print n + 0 }'
}

# heard NAME: how many nodes the rank has heard at the end of its round; nothing before.
heard() {
	sed -n 's/^INFO .*Neighbours: //p' "$FAULTS/$1.log" | tail -1 | awk '{
		n = gsub(/is cabled to node/, "")
		if (match($0, /and [0-9]+ more/)) n += substr($0, RSTART + 4) + 0
		print n
	}'
}

# all_heard COUNT NAME...: each of these ranks has heard so many nodes.
all_heard() {
	local count=$1 name

	shift
	for name in "$@"; do
		wait_for "[[ \$(heard rank-$name) ]]" $((60 * FAULTS_SLOW)) ||
			faults_show "$name says nothing of its neighbours"
		[[ $(heard "rank-$name") == "$count" ]] ||
			faults_show "$name has heard $(heard "rank-$name") nodes, not $count"
	done
}

faults_init
names=()
for ((i = 0; i < NODES; i++)); do names+=("n$i"); done
mesh_node "${names[@]}"
for ((i = 0; i < NODES; i++)); do mesh_switch switch "n$i" x "10.83.0.$((i + 1))/24"; done

# One rank on each node, so that all answer; then 64 on one node, together.
first=() many=()
for node in "${names[@]}"; do
	rank "$node" 0 1
	first+=("$node-0")
done
listening "${first[@]}"
before=$(sent)
for ((i = 1; i <= RANKS; i++)); do
	rank n0 $i 1
	many+=("n0-$i")
done
listening "${many[@]}"
all_heard $((NODES - 1)) "${many[@]}"
count=$(($(sent) - before))
least=$((RANKS * NODES)) most=$((QUESTIONS * RANKS * NODES))
note "$RANKS ranks on one of $NODES nodes: $count datagrams, $least at least, $most at most"
((count >= least && count <= most)) || fail "$count datagrams"
on n1 "$MESH_BUILD/fi_mesh" neighbours --json >"$FAULTS/out"
python3 - "$FAULTS/out" $NODES $((RANKS + 1)) <<-'PY' || fail "$(cat "$FAULTS/out")"
	import json, sys
	nodes, ranks = int(sys.argv[2]), int(sys.argv[3])
	(nic,) = json.load(open(sys.argv[1]))["nics"]
	total = {n["node"]: n["total_processes"] for n in nic["neighbours"]}
	assert len(total) == len(nic["neighbours"]) == nodes - 1, total
	assert total.pop("n0") == ranks and set(total.values()) == {1}, total
	(n0,) = [n for n in nic["neighbours"] if n["node"] == "n0"]
	assert len(n0["processes"]) == min(ranks, 32), len(n0["processes"])
PY
touch "$FAULTS/end-1"
for name in "${first[@]}" "${many[@]}"; do ended "rank-$name"; done

# All nodes at once, with some ranks each: a rank hears the nodes that were there before it.
before=$(sent)
all=()
for ((i = 0; i < RANKS; i++)); do
	rank "n$((i % NODES))" $((100 + i / NODES)) 2
	all+=("n$((i % NODES))-$((100 + i / NODES))")
done
listening "${all[@]}"
for name in "${all[@]}"; do
	wait_for "[[ \$(heard rank-$name) ]]" $((60 * FAULTS_SLOW)) ||
		faults_show "$name says nothing of its neighbours"
done
count=$(($(sent) - before))
most=$((QUESTIONS * RANKS * NODES))
note "$RANKS ranks on $NODES nodes, together: $count datagrams, $most at most"
((count <= most)) || fail "$count datagrams"
touch "$FAULTS/end-2"
for name in "${all[@]}"; do ended "rank-$name"; done
[[ -z $slow ]] || note "(fewer, because the build is slow)"
