#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_resume.sh - one of two cables fails while messages of all sizes stream in both directions:
# the connections go on over the other one. Every byte is checked, and no run ends with an error.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OUT=$MESH_BUILD/resume

mesh_init
mesh_node a b
for i in 1 2; do mesh_link a x$i 10.77.$i.1/24 b x$i 10.77.$i.2/24; done

# stream NAME SECONDS: ranks in the background that send both ways, for eight times as long.
stream() {
	rm -rf "${OUT:?}/$1" # the log of an earlier run has a path, too
	RANKS_TIMEOUT=120 RANKS_ENV=(NCCL_MESH_DEAD_PEER_TIMEOUT=3 "${@:3}")
	run_ranks "$OUT/$1" a b -- -v --timeout 60 --pairs 0-1,1-0 --all-at-once --channels 2 \
		--sizes 64,4K,64K,1M --no-check --seconds "$2" --repeat 1 &
	RANKS=$!
	wait_for "grep -q 'path: .*nic=x2' $OUT/$1/rank0.out 2>/dev/null" 60 ||
		fail "$1: the ranks do not connect over both cables"
}

# goes_on NAME: the ranks end without an error.
goes_on() {
	wait "$RANKS" || { ranks_show "$OUT/$1"; fail "$1: the stream broke"; }
	grep -qh 'its messages go over the other paths now' "$OUT/$1"/rank*.out ||
		fail "$1: no path was lost"
	! grep -Eqhi 'wrong byte' "$OUT/$1"/rank*.out || fail "$1: a wrong byte"
	note "$1: $(grep -h 'warning: NET/Mesh' "$OUT/$1"/rank0.out | head -1 | cut -c1-200)"
}

# sockets_kill NODE NIC: resets every TCP connection that NIC has.
sockets_kill() {
	local addr

	addr=$(on "$1" ip -4 -o addr show "$2" | awk '{sub("/.*", "", $4); print $4}')
	on "$1" ss -K -t src "$addr" >/dev/null 2>&1
}

pause() { read -rt "$1" -u "$MESH_NEVER" || true; }

# Connections of the provider and of the plugin on one link are reset, at either end.
for node in a b; do
	stream "reset_$node" 1
	pause 3
	sockets_kill "$node" x2
	goes_on "reset_$node"
done

# A link that goes down and stays down. Silence would be noticed only after the test has ended.
stream down 1 NCCL_MESH_DEAD_PEER_TIMEOUT=300
pause 2
mesh_carrier a x2 down
goes_on down
mesh_carrier a x2 up

# With NCCL_MESH_RECOVERY=off a lost path ends the connections.
stream off 1 NCCL_MESH_RECOVERY=off
pause 2
sockets_kill a x2
! wait "$RANKS" || fail "off: nothing failed"
! grep -qh 'go over the other paths' "$OUT/off"/rank*.out || fail "off: a path was resumed"
grep -qh 'plugin warning: NET/Mesh' "$OUT/off"/rank*.out || fail "off: it failed without a warning"
note "off: $(grep -h 'warning: NET/Mesh' "$OUT/off"/rank*.out | head -1 | cut -c1-150)"
