# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# fault_soak.sh - faults at random while messages of all sizes stream between two nodes with two
# cables. To be sourced; soak FAULTS SEED is what tests/functional/soak and test_fault_soak.sh run.

# shellcheck source=tests/functional/cables.sh
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

# The longest time that nothing may arrive for while one cable works, and after both were away: a
# cable that drops packets in silence costs NCCL_MESH_DEAD_PEER_TIMEOUT, one that flaps its pause.
SOAK_MOVES_MS=16000
# Longest fault in milliseconds; 20 s in a long run.
SOAK_LONGEST_MS=${SOAK_LONGEST_MS:-20000}

# random N: 0 to N-1, from the seed of the run.
random() { echo $((RANDOM % $1)); }

# fault_ms: the length of a fault: as many of each order of magnitude from 10 ms on.
fault_ms() {
	local ms=10

	while ((ms * 2 < SOAK_LONGEST_MS && RANDOM % 12)); do ms=$((ms * 2)); done
	echo $((ms + RANDOM % ms))
}

seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# ends_of KIND: "a", "b", or "a b".
ends_of() { case $(random 3) in 0) echo a ;; 1) echo b ;; *) echo a b ;; esac; }

links_set() {
	local nic=$1 state=$2 node

	for node in "${@:3}"; do
		ip -n "$MESH_PREFIX$node" link set "$nic" "$state" || fail "$node $nic $state"
	done
}

fault_down() {
	local nic=$1 ms ends

	read -ra ends < <(ends_of)
	ms=$(fault_ms)
	SAID="$nic down at ${ends[*]} for $ms ms"
	links_set "$nic" down "${ends[@]}"
	pause "$(seconds "$ms")"
	links_set "$nic" up "${ends[@]}"
}

# Resets every connection of the cable at one end, or one of them.
fault_kill() {
	local nic=$1 node addr ports=()

	node=$([[ $(random 2) == 0 ]] && echo a || echo b)
	addr=$(mesh_addr "$node" "$nic")
	mapfile -t ports < <(on "$node" ss -Htn state established src "$addr" |
		awk '{sub(".*:", "", $3); print $3}' | sort -u)
	if ((${#ports[@]} && RANDOM % 2)); then
		SAID="one connection of $node's $nic reset"
		on "$node" ss -K -t src "$addr" sport = ":${ports[RANDOM % ${#ports[@]}]}" \
			>/dev/null 2>&1
	else
		SAID="all connections of $node's $nic reset"
		on "$node" ss -K -t src "$addr" >/dev/null 2>&1
	fi
}

# A rule that drops all packets of the cable, in silence.
fault_drop() {
	local nic=$1 node ms

	node=$([[ $(random 2) == 0 ]] && echo a || echo b)
	ms=$(fault_ms)
	SAID="$node drops what comes over $nic for $ms ms"
	on "$node" nft add table inet soak
	on "$node" nft add chain inet soak in '{ type filter hook input priority 0 ; }'
	on "$node" nft add rule inet soak in iifname "$nic" drop
	pause "$(seconds "$ms")"
	on "$node" nft delete table inet soak
}

# A firewall that is reloaded: for a moment it resets what is there and refuses what is new.
fault_reject() {
	local nic=$1 node ms

	node=$([[ $(random 2) == 0 ]] && echo a || echo b)
	ms=$((10 + $(random 1000)))
	SAID="$node rejects TCP on $nic for $ms ms"
	on "$node" nft add table inet soak
	on "$node" nft add chain inet soak in '{ type filter hook input priority 0 ; }'
	on "$node" nft add rule inet soak in iifname "$nic" meta l4proto tcp \
		reject with tcp reset
	pause "$(seconds "$ms")"
	on "$node" nft delete table inet soak
}

# A second fault while the first one is being repaired.
fault_twice() {
	local nic=$1 said

	fault_kill "$nic"
	said=$SAID
	pause "0.$(printf %03d "$(random 400)")"
	fault_down "x$((RANDOM % 2 + 1))"
	SAID="$said; then $SAID"
}

fault_both() {
	SAID="both cables down for 5 s"
	links_set x1 down a
	links_set x2 down a
	pause 5
	links_set x1 up a
	links_set x2 up a
}

# A cable is drained, at both ends; half of the times it is pulled then, ready or not.
fault_drain() {
	local nic=$1 ms drained

	SAID="$nic drained"
	drained=$(on a "$MESH_BUILD/fi_mesh" drain --stats-dir "$SOAK_STATS" \
		--timeout "$(random 3)" "$nic" 2>/dev/null)
	[[ $drained ]] || SAID="$nic drained, but for something in flight"
	if ((RANDOM % 2)); then
		ms=$(fault_ms)
		SAID="$SAID, and down for $ms ms"
		links_set "$nic" down a b
		pause "$(seconds "$ms")"
		links_set "$nic" up a b
	fi
	on a "$MESH_BUILD/fi_mesh" undrain --stats-dir "$SOAK_STATS" "$nic" || fail "undrain $nic"
}

# soak FAULTS SEED [PROVIDER]: until so many faults are over; the streams must not notice. The
# cables are made once.
soak() {
	local i nic provider=${3:-tcp}

	RANDOM=$2
	[[ ${CABLES_BYTES_S:-} ]] || cables_init 2 "${SOAK_RATE:-100mbit}"
	STREAM_SEED=$2
	note "over $provider"
	SOAK_STATS=$CABLES_FOLDER/stats
	stream "soak-${provider#*;}" 0 NCCL_MESH_DEAD_PEER_TIMEOUT=3 \
		"NCCL_MESH_PROVIDER=$provider" "NCCL_MESH_STATS_DIR=$SOAK_STATS"
	for ((i = 1; i <= $1; i++)); do
		nic=x$((RANDOM % 2 + 1))
		case $(random 26) in
		[0-8]) fault_down $nic ;;
		9 | 1[0-3]) fault_kill $nic ;;
		1[4-5]) fault_drop $nic ;;
		1[6-8]) fault_twice $nic ;;
		2[0-3]) fault_drain $nic ;;
		2[4-5]) fault_reject $nic ;;
		*) fault_both ;;
		esac
		moves $SOAK_MOVES_MS
		note "$i of $1: $SAID; something arrives after $MOVED_MS ms"
		pause "0.$(printf %03d "$(random 1000)")"
	done
	# After the pause of a cable that has flapped both are used, though not filled by this mix.
	CABLES_ENOUGH=25
	for nic in x1 x2; do carries $nic 15000; done
	stream_stop
	stream_ends
	note "$(grep -h 'bytes are right' "$STREAM_FOLDER"/rank*.out | paste -sd';')"
}
