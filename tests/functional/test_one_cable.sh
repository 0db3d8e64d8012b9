#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_one_cable.sh - the only cable between two nodes goes away while messages of all sizes stream:
# the connections wait and go on when it is back, and end in words if the other process has ended.
# seconds: 70
# long: tests/world: only-way, refused-then-silent
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

cables_init 1 200mbit

# soon WORDS: something arrives within 1 s; a busy machine gets the time that shows no timer of the
# kernel's: that has backed off to tens of seconds.
soon() {
	moves 5000
	((MOVED_MS <= 1000 * CABLES_SLOW || $(core_share) < CABLES_CORE)) ||
		stream_fail "$*: something arrives after $MOVED_MS ms only"
	note "$*: something arrives after $MOVED_MS ms"
}

# shows METRIC: the sum of what `fi_mesh watch` has for it, of both processes.
shows() {
	on a timeout 60 "$MESH_BUILD/fi_mesh" watch --stats-dir "$STATS" --prometheus |
		awk -v metric="nccl_mesh_$1{" '
			index($0, metric) == 1 {sum += $NF}
			END {print sum + 0}
		'
}

STATS=$CABLES_FOLDER/stats
mkdir -m 700 "$STATS" || fail "cannot make $STATS"
stream away 0 NCCL_MESH_STATS_DIR="$STATS"
moves 5000
(($(shows link_paths) == 16 && $(shows link_losses_total) == 0)) ||
	stream_fail "fi_mesh watch does not show 16 paths that are up"
for seconds in 5 25; do
	mesh_carrier a x1 down
	pause "$seconds"
	(($(shows link_paths_down) == 16)) ||
		stream_fail "fi_mesh watch does not show 16 paths down"
	mesh_carrier a x1 up
	soon "a has no carrier for $seconds s"
done
on a ss -K -t src 10.77.1.1 >/dev/null 2>&1
soon "all connections are reset"
# Each end waits for the other's acknowledgements, with its carrier.
on b nft add table inet silence
on b nft add chain inet silence in '{ type filter hook input priority 0 ; }'
on b nft add rule inet silence in iifname x1 drop
pause 8
on b nft delete table inet silence
soon "b drops all packets for 8 s"
(($(shows link_paths_down) == 0 && $(shows link_losses_total) >= 64)) ||
	stream_fail "fi_mesh watch does not show that all paths are up again"
note "$(shows link_resent_bytes_total) bytes were sent again"
stream_stop
stream_ends
for text in 'its messages wait for a path' 'its messages go over this path, too'; do
	mapfile -t lines < <(said "$text")
	((lines[0] >= 4 && lines[0] <= 8 && lines[1] >= 4 && lines[1] <= 8)) ||
		stream_fail "${lines[*]} lines: $text"
done

# The other process ends while the cable is away.
stream killed 0 NCCL_MESH_RECOVERY_TIMEOUT=60
moves 5000
mesh_carrier a x1 down
wait_for "((\$(said 'its messages wait for a path' | paste -sd+)))" 60 || stream_fail "no loss"
kill -KILL "${STREAM_PIDS[1]}"
wait "${STREAM_PIDS[1]}" 2>/dev/null
mesh_carrier a x1 up
stream_breaks 0 'its process has ended' 2000

# Without recovery the comm fails as soon as the link does.
stream off 0 NCCL_MESH_RECOVERY=off NCCL_MESH_DEAD_PEER_TIMEOUT=3
moves 5000
mesh_carrier a x1 down
stream_breaks 0 'lost node b .*no answer for 3 s' 5000
stream_breaks 1 'lost node a .*no answer for 3 s' 2000
