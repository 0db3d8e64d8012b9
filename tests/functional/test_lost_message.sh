#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_lost_message.sh - the provider's connection is reset between two living processes.
#
# libfabric reconnects and does not report what was lost. Either every byte arrives all the same,
# or the run ends with an error in words, within a bounded time: never a hang, never a wrong byte.
# seconds: 50
# long: tests/world resets connections at random, and the soak
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

OUT=$MESH_BUILD/lost_message
# Under sanitizers two of them meet what is in flight, too: what differs is chance.
RESETS=${RESETS:-$([[ $MESH_BUILD == *sanitize* ]] && echo 2 || echo 5)}

mesh_init
mesh_node a
mesh_node b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
mkdir -p "$OUT"

# Resets every TCP connection on the link but the control connections, which are the plugin's own:
# the provider's is the one that carries data, so it has sent more than a megabyte.
data_sockets_reset() {
	on a ss -Htni state established src 10.77.1.1 | awk '
		$4 ~ /^10\.77\.1\.2:/ || $3 ~ /^10\.77\.1\.1:/ {local = $3; peer = $4; next}
		match($0, /bytes_sent:[0-9]+/) {
			if (substr($0, RSTART + 11, RLENGTH - 11) + 0 > 1000000) print local, peer
		}' >"$OUT/sockets"
	while read -r local peer; do
		on a ss -K src "$local" dst "$peer" >/dev/null 2>&1 && echo "reset $local $peer"
	done <"$OUT/sockets"
}

for ((i = 0; i < RESETS; i++)); do
	RANKS_TIMEOUT=60 RANKS_ENV=(NCCL_MESH_DEAD_PEER_TIMEOUT=3)
	(run_ranks "$OUT/run$i" a b -- --no-check --timeout 25 --pairs 0-1 --sizes 4K,64K,1M \
		--seconds 3 --repeat 1) &
	run=$!
	# shellcheck disable=SC2016 # wait_for evaluates it
	wait_for '[[ -n $(data_sockets_reset) ]]' 60 || fail "there was no data connection to reset"
	started=$SECONDS
	if wait $run; then
		note "run $i: reset, and all was right"
	else
		out=("$OUT/run$i"/rank*.out)
		((SECONDS - started < 40)) || fail "run $i ended after $((SECONDS - started)) s"
		said=$(grep -h 'plugin warning: NET/Mesh' "${out[@]}" | head -1) ||
			fail "run $i failed without a line of the plugin's: see ${out[0]}"
		! grep -qh 'no progress for' "${out[@]}" || fail "run $i hung: see ${out[0]}"
		! grep -qhi 'wrong byte' "${out[@]}" || fail "run $i had a wrong byte"
		note "run $i: ${said:0:150}"
	fi
done
