#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_drain.sh - `fi_mesh drain` takes one of two cables out of use while messages of all sizes
# stream in both directions; then the cable is pulled, comes back, and is used again. Nothing is
# sent twice, no path counts as lost in a WARN, and every byte is right.
# seconds: 35
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/lib.sh"

OUT=$MESH_BUILD/drain
STATS=$OUT/stats
MESH=$MESH_BUILD/fi_mesh

rm -rf "$OUT"
mkdir -p "$OUT"
mesh_init
mesh_node a b
# One folder for both nodes: the names of their NICs differ.
for i in 1 2; do mesh_link a xa$i 10.77.$i.1/24 b xb$i 10.77.$i.2/24; done

RANKS_TIMEOUT=200 RANKS_ENV=(NCCL_MESH_STATS_DIR="$STATS")
run_ranks "$OUT/stream" a b -- -v --timeout 60 --pairs 0-1,1-0 --all-at-once --channels 2 \
	--sizes 1M,64K,4K,64 --no-check --seconds 8 --repeat 1 &
RANKS=$!

# watched NODE FIELD NIC: the sum of a number of all paths of the NIC.
watched() {
	on "$1" "$MESH" watch --stats-dir "$STATS" --json --count 1 --interval 0.1 |
		python3 -c 'import json, sys
links = [l for l in json.load(sys.stdin)["links"] if l["nic"] == sys.argv[2]]
print(sum(l[sys.argv[1]] for l in links))' "$2" "$3"
}

# resent: bytes of both ranks over both cables that were sent again.
resent() { echo $(($(watched a resent xa1) + $(watched a resent xa2) + \
	$(watched b resent xb1) + $(watched b resent xb2))); }

drain() { on a "$MESH" drain --stats-dir "$STATS" "$@"; }
undrain() { on a "$MESH" undrain --stats-dir "$STATS" "$@"; }

sent() { on "$1" cat "/sys/class/net/$2/statistics/tx_bytes"; }

# carries NODE NIC MIB: waits until the NIC has sent so much more.
carries() {
	local before

	before=$(sent "$1" "$2")
	wait_for "(( \$(sent $1 $2) - $before > $3 << 20 ))" 60 || fail "$2 carries nothing"
}

# rests: while the other cable carries 30 MiB, nothing but control traffic goes over this one.
rests() {
	local before_a before_b more

	before_a=$(sent a xa2) before_b=$(sent b xb2)
	carries a xa1 30
	more=$(($(sent a xa2) - before_a + $(sent b xb2) - before_b))
	((more < 1 << 20)) || fail "$1: $more bytes went over the drained cable"
	note "$1: $more bytes over the cable, while the other one carried 30 MiB"
}

streams() { kill -0 "$RANKS" 2>/dev/null || { cat "$OUT"/stream/*.out; fail "$1: no stream"; }; }

wait_for "grep -q 'path: .*nic=xa2' $OUT/stream/rank0.out 2>/dev/null" 60 || fail "no second path"
wait_for "[[ \$(watched a open_paths xa2 2>/dev/null) == 8 ]]" 60 || fail "no open paths"
carries a xa2 5

drain xa2 >"$OUT/drained" || fail "drain: $(cat "$OUT/drained")"
grep -q '^xa2 is drained: 8 connections of 1 process use other paths' "$OUT/drained" ||
	fail "drain says: $(cat "$OUT/drained")"
(($(watched a drained_paths xa2) == 8)) || fail "watch shows no drained paths"
grep -q 'warning: .*xa2 is being drained' "$OUT/stream/rank0.out" || fail "no WARN"
rests "drained"
streams "drained"

# The only cable that is left cannot be drained: what uses it is named.
! drain --timeout 1 xa1 >"$OUT/left" 2>&1 || fail "the last cable is drained"
grep -q 'fabric_pingpong (pid .*: 8 connections with node b: no other path' "$OUT/left" ||
	fail "drain says: $(cat "$OUT/left")"
undrain xa1 || fail "undrain xa1"
wait_for "! on a $MESH watch --stats-dir $STATS --count 1 --interval 0.1 | grep -q 'xa1.*drained'" \
	30 || fail "xa1 is still drained"
drain xa2 >"$OUT/drained" || fail "drain again: $(cat "$OUT/drained")"

# The cable is pulled.
mesh_carrier a xa2 down
wait_for "(( \$(watched a down_paths xa2) == 8 && \$(watched b down_paths xb2) == 8 ))" 30 ||
	fail "nobody sees that the cable is out"
(($(resent) == 0)) || fail "$(resent) bytes were sent again"
! grep -h 'warning.*lost node' "$OUT"/stream/*.out || fail "the drained cable was missed"
carries a xa1 10

# It comes back, and stays out of use until it is undrained.
mesh_carrier a xa2 up
wait_for "(( \$(watched a down_paths xa2) == 0 && \$(watched a drained_paths xa2) == 8 ))" 60 ||
	fail "the cable does not come back"
rests "back"
undrain xa2 || fail "undrain xa2"
carries a xa2 5
carries b xb2 5
(($(watched a drained_paths xa2) == 0)) || fail "xa2 is still drained"
(($(resent) == 0)) || fail "$(resent) bytes were sent again"
streams "undrained"
wait "$RANKS" || { ranks_show "$OUT/stream"; fail "the stream broke"; }
