#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_neighbour_flood.sh - a stranger on the link sends 10,000 datagrams a second to the port of
# the neighbours and to those who ask, most of them answers that are forged, replayed, oversized or
# truncated: a transfer keeps its rate, memory is bounded, and there is one line about it.
# alone: it measures a rate
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

RATE=10000
# Percent of the rate without the flood.
KEEPS=75
# Samples of a quarter of a second, with the flood and without it in turns.
TURNS=10
# KiB that a rank may grow by in 8 s, in which 10 MiB arrive at each.
GROWS=1024
# What is freed fills AddressSanitizer's quarantine first: test.sh gives it 32 MiB.
[[ $MESH_BUILD != *sanitize-address* ]] || GROWS=$((GROWS + 32 * 1024))

command -v python3 >/dev/null || skip "python3 is missing"
STREAM_MOST=300000

faults_init
mesh_node a b x
mesh_switch switch a x1 10.81.1.1/24 b x1 10.81.1.2/24 x x1 10.81.1.3/24
for node in a b; do mesh_shape $node x1 100mbit; done
# shellcheck disable=SC2034 # for share()
CABLES_BYTES_S=$((100 * 1000000 / 8))

rss() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# flood COMMAND: the stranger goes on, or stops.
flood() { kill "-$1" "$FLOOD" 2>/dev/null || fail "the flood has ended: $(cat "$FLOOD_LOG")"; }

# asks NODE: another address makes its rank ask, so that the stranger learns port and token.
asks() {
	local ns

	ns=$(mesh_ns "$1")
	ip -n "$ns" address del "10.82.${ADDED[$1]}.1/24" dev x1 2>/dev/null
	ip -n "$ns" address add "10.82.$((++ADDED[$1])).1/24" dev x1
}

FLOOD_LOG=$FAULTS/stranger
declare -A ADDED=([a]=0 [b]=0)
# Without copies of large messages, which take memory until each size has been sent often.
stream flood 0 NCCL_MESH_DEBUG_EAGER_LIMIT=1K
mesh_spawn x "$FLOOD_LOG" python3 "$MESH_TOP/tests/functional/neighbour_flood.py" x1 $RATE \
	"$(mesh_link_local a x1)" "$(mesh_link_local b x1)"
FLOOD=$MESH_SPAWNED
wait_for "[[ -s $FLOOD_LOG ]]" 60 || fail "the flood does not begin: $(cat "$FLOOD_LOG")"
pids=("${STREAM_PIDS[@]}")
flood STOP
without=() with=()
for ((turn = 0; turn < TURNS; turn++)); do
	without+=("$(share x1)")
	flood CONT
	asks a
	asks b
	pause 0.2
	with+=("$(share x1)")
	flood STOP
done
# All in one run: the pace of the line about it, and the memory. By now each size of message was
# sent, and the tables of answers are full.
before=()
for i in 0 1; do before[i]=$(rss "${pids[i]}"); done
flood CONT
for ((turn = 0; turn < 16; turn++)); do
	asks a
	asks b
	pause 0.5
done
flood STOP
grew=()
for i in 0 1; do grew[i]=$(($(rss "${pids[i]}") - before[i])); done
flood CONT
stream_stop
stream_ends
off=$(median "${without[@]}")
on=$(median "${with[@]}")
note "sent: $(tail -1 "$FLOOD_LOG")"
note "share of the link: $off % without, $on % with the flood; ranks grew by ${grew[*]} KiB"
for i in 0 1; do
	((grew[i] <= GROWS * FAULTS_SLOW)) || stream_fail "rank $i grew by ${grew[i]} KiB"
done
lines=$(grep -c 'WARN .*datagrams a second arrive on UDP port' "$STREAM_FOLDER/rank0.out")
others=$(grep 'WARN' "$STREAM_FOLDER/rank0.out" | grep -vc 'datagrams a second arrive on UDP port')
note "$lines lines about it, $others other warnings"
((lines >= 1)) || stream_fail "not a word about the flood"
((lines <= 1 + SECONDS / 10)) || stream_fail "$lines lines in $SECONDS s"
((others == 0)) || stream_fail "$others other warnings"
if ((on < off * KEEPS / 100)); then
	(($(core_share) >= CABLES_CORE)) || skip "the machine is busy: $on % of $off %"
	stream_fail "the transfer keeps only $on % of $off %"
fi
