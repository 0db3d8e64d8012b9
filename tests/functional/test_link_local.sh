#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_link_local.sh - cables with nothing but link-local addresses connect at once, because the
# neighbours say where they lead; and what a false answer can do.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Each cable of a mesh connects within this, in ms, once the listeners are there: less than the 3 s
# that one wrong candidate costs.
AT_ONCE=2500

# cable X Y: a NIC xy at x, and yx at y.
cable() {
	mesh_link "$1" "$1$2" "${ADDRESSES:-}" "$2" "$2$1" "${ADDRESSES:-}"
	LINKS+=("$1 $2" "$2 $1")
}

# each_link X OUT IN: the lines of a script for each link that leads from X, and to X. @ is the
# link's number, and % the file of its handle.
each_link() {
	local link n=0 from to lines

	for link in "${LINKS[@]}"; do
		read -r from to <<<"$link"
		lines=""
		[[ $from != "$1" ]] || lines=$2
		[[ $to != "$1" ]] || lines=$3
		lines=${lines//@/$n}
		[[ ! $lines ]] || echo "${lines//%/$FAULTS/$from-$to}"
		n=$((n + 1))
	done
}

# rank X: connects to each node that X has a cable to, and carries bytes both ways. Transfers go in
# the same order on all nodes, so that none waits for another in a circle.
rank() {
	local link moves=$'reg @ @ 0\ntransfer @ 64K 20 @\ndereg @'

	play "$1" "rank-$1" < <(
		each_link "$1" "" "listen @ %"
		echo "buffer 0 1M"
		for link in "${LINKS[@]}"; do echo "await $FAULTS/${link/ /-}"; done
		each_link "$1" "within $(ms "$AT_ONCE") connect @ %" ""
		each_link "$1" "$moves" $'accept @ @\n'"$moves"
		each_link "$1" "close @" $'close @\nclose-listen @'
	)
}

# took NODE: how long the connections of its rank took, in ms: the slowest one, and all in a row.
took() {
	sed -n 's/^ok connect: result 0, \([0-9]*\) ms/\1/p' "$FAULTS/rank-$1.log" |
		awk '{ sum += $1; if ($1 > most) most = $1 } END { print most + 0, sum + 0 }'
}

# mesh NAME NODE...: all ranks of $LINKS at once. A rank connects when the last one listens.
mesh() {
	local name=$1 node slowest=0 all=0 one row

	shift
	rm -f "$FAULTS"/{?-?,rank-?.log}
	for node in "$@"; do rank "$node"; done
	for node in "$@"; do
		ended "rank-$node"
		unsaid "rank-$node" WARN "still connecting"
		read -r one row < <(took "$node")
		((one <= slowest)) || slowest=$one
		((row <= all)) || all=$row
	done
	note "$name: the slowest connection took $slowest ms, all of a rank $all ms"
	((all <= $(ms "$AT_ONCE"))) || faults_show "$name: a rank connects for $all ms"
}

faults_init

mesh_node a b c
LINKS=()
cable a b
cable b c
cable c a
mesh "triangle" a b c
FAULTS_ENV+=(NCCL_MESH_NEIGHBOURS=off)
AT_ONCE=30000
mesh "triangle, without questions" a b c
AT_ONCE=2500
unset "FAULTS_ENV[-1]"

# A torus of 3x3: each rank has four cables, which all look the same.
mesh_node 0 1 2 3 4 5 6 7 8
LINKS=()
for i in 0 1 2 3 4 5 6 7 8; do
	cable "$i" "$((i / 3 * 3 + (i + 1) % 3))"
	cable "$i" "$(((i + 3) % 9))"
done
# Nine processes greet 36 times here, on as few cores as the machine has.
((AT_ONCE *= $(nproc) < 9 ? 9 / $(nproc) : 1))
mesh "torus of 3x3" 0 1 2 3 4 5 6 7 8

# NetworkManager and netplan give each NIC an address of 169.254.0.0/16, too, which is one subnet:
# two cables would be one, and the cables of a triangle one network.
mesh_node p q r
mesh_link p pq 169.254.1.1/16 q qp 169.254.1.2/16
mesh_link p pq2 169.254.2.1/16 q qp2 169.254.2.2/16
mesh_link q qr 169.254.3.1/16 r rq 169.254.3.2/16
mesh_link r rp 169.254.4.1/16 p pr 169.254.4.2/16
LINKS=("p q" "q p" "q r" "r q" "r p" "p r")
mesh "triangle with addresses of 169.254.0.0/16" p q r
for nic in pq pq2 pr; do
	said rank-p INFO "nic=$nic local=fe80"
done

# Addresses that say b, on a cable that leads to c: the error names what is there.
mesh_node x y z
mesh_link x xy 10.77.41.1/24 z zx 10.77.42.2/24
mesh_link x xz 10.77.42.1/24 y yx 10.77.41.2/24
play x crossed <<-END
	listen 0 $FAULTS/asks
	limit 60000
	await $FAULTS/crossed
	! connect 0 $FAULTS/crossed
	close-listen 0
END
# The others start when it has asked in vain: it asks again while it still connects.
wait_for "grep -q 'Neighbours: xy has no answer; xz has no answer' $FAULTS/crossed.log" 60 ||
	faults_show "crossed does not say that nothing answers"
mesh_spawn z "$FAULTS/serve-z" "$MESH_BUILD/fi_mesh" serve
play y listener <<-END
	listen 0 $FAULTS/crossed
	await $FAULTS/done
	close-listen 0
END
ended crossed
touch "$FAULTS/done"
ended listener
said crossed WARN "Neighbours: xy is cabled to node z \\(zx\\); xz is cabled to node y \\(yx\\)"
note "crossed cables: $(grep -hE "^WARN.*gave up" "$FAULTS/crossed.log")"
