# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# fault_soak.sh - faults at random while messages of all sizes stream between two nodes with two
# cables, and between them and a guest, a third process on a node of its own. To be sourced; soak
# FAULTS SEED is what tests/functional/soak and test_fault_soak.sh run.
#
# What docs/protocol/recovery.md promises is checked: no fault here ends a connection but the end of
# the guest, which ends those with the guest at both nodes, and no other.

# shellcheck source=tests/functional/cables.sh
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

# The longest time that nothing may arrive for while one cable works, and after both were away: a
# cable that drops packets in silence costs NCCL_MESH_DEAD_PEER_TIMEOUT, one that flaps its pause.
SOAK_MOVES_MS=16000
# In which the connections with a guest that was killed have failed and are closed, which takes half
# a second: less than the 30 s after which they would fail without a reason.
SOAK_ENDS_S=20
# Longest fault in milliseconds; 20 s in a long run, less than NCCL_MESH_RECOVERY_TIMEOUT.
SOAK_LONGEST_MS=${SOAK_LONGEST_MS:-20000}
SOAK_RATE=${SOAK_RATE:-100mbit}
# Of the guest's cables.
SOAK_GUEST_RATE=20mbit
# Kinds that come before the random ones.
SOAK_FIRST=()
# Each kind as often as it counts.
SOAK_KINDS=(
	down down down down down down down down down kill kill kill kill kill drop drop
	twice twice twice drain drain drain drain reject reject both
	descriptors descriptors stopped stopped ended ended
)
[[ ! ${SOAK_SLOW:-} ]] || SOAK_KINDS+=(slow slow)

# draw N: 0 to N-1 into DRAWN, from the seed of the run: not to be called in a subshell, which has
# random numbers of its own.
draw() { DRAWN=$((RANDOM % $1)); }

# draw_ms: the length of a fault, into MS: as many of each order of magnitude from 10 ms on.
draw_ms() {
	MS=10
	while ((MS * 2 < SOAK_LONGEST_MS && RANDOM % 12)); do MS=$((MS * 2)); done
	MS=$((MS + RANDOM % MS))
}

seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# draw_ends: "a", "b", or "a" and "b" into ENDS.
draw_ends() {
	draw 3
	case $DRAWN in 0) ENDS=(a) ;; 1) ENDS=(b) ;; *) ENDS=(a b) ;; esac
}

# draw_node: a or b into NODE.
draw_node() {
	draw 2
	NODE=$([[ $DRAWN == 0 ]] && echo a || echo b)
}

links_set() {
	local nic=$1 state=$2 node

	for node in "${@:3}"; do
		ip -n "$MESH_PREFIX$node" link set "$nic" "$state" || fail "$node $nic $state"
	done
}

fault_down() {
	local nic=$1

	draw_ends
	draw_ms
	SAID="$nic down at ${ENDS[*]} for $MS ms"
	links_set "$nic" down "${ENDS[@]}"
	pause "$(seconds "$MS")"
	links_set "$nic" up "${ENDS[@]}"
}

# Resets every connection of the cable at one end, or one of them.
fault_kill() {
	local nic=$1 addr which ports=()

	draw_node
	draw 2
	which=$DRAWN
	draw 1000
	addr=$(mesh_addr "$NODE" "$nic")
	mapfile -t ports < <(on "$NODE" ss -Htn state established src "$addr" |
		awk '{sub(".*:", "", $3); print $3}' | sort -u)
	if ((${#ports[@]} && which)); then
		SAID="one connection of $NODE's $nic reset"
		on "$NODE" ss -K -t src "$addr" sport = ":${ports[DRAWN % ${#ports[@]}]}" \
			>/dev/null 2>&1
	else
		SAID="all connections of $NODE's $nic reset"
		on "$NODE" ss -K -t src "$addr" >/dev/null 2>&1
	fi
}

# rule NODE RULE...: for MS milliseconds.
rule() {
	on "$1" nft add table inet soak
	on "$1" nft add chain inet soak in '{ type filter hook input priority 0 ; }'
	on "$1" nft add rule inet soak in "${@:2}"
	pause "$(seconds "$MS")"
	on "$1" nft delete table inet soak
}

# All packets of the cable are dropped, in silence.
fault_drop() {
	draw_node
	draw_ms
	SAID="$NODE drops what comes over $1 for $MS ms"
	rule "$NODE" iifname "$1" drop
}

# A firewall that is reloaded: for a moment it resets what is there and refuses what is new.
fault_reject() {
	draw_node
	draw 1000
	MS=$((10 + DRAWN))
	SAID="$NODE rejects TCP on $1 for $MS ms"
	rule "$NODE" iifname "$1" meta l4proto tcp reject with tcp reset
}

# fault_cable NIC: a cable is lost while something else is wrong.
fault_cable() {
	draw 3
	case $DRAWN in 0) fault_kill "$1" ;; *) fault_down "$1" ;; esac
}

# A second fault while the first one is being repaired.
fault_twice() {
	local nic=$1 said

	fault_kill "$nic"
	said=$SAID
	draw 400
	pause "0.$(printf %03d "$DRAWN")"
	draw 2
	fault_down "x$((DRAWN + 1))"
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
	local nic=$1 drained pulled limit

	draw 2
	pulled=$DRAWN
	draw 3
	limit=$DRAWN
	draw_ms
	SAID="$nic drained"
	drained=$(on a "$MESH_BUILD/fi_mesh" drain --stats-dir "$SOAK_STATS" \
		--timeout "$limit" "$nic" 2>/dev/null)
	[[ $drained ]] || SAID="$nic drained, but for something in flight"
	if ((pulled)); then
		SAID="$SAID, and down for $MS ms"
		links_set "$nic" down a b
		pause "$(seconds "$MS")"
		links_set "$nic" up a b
	fi
	on a "$MESH_BUILD/fi_mesh" undrain --stats-dir "$SOAK_STATS" "$nic" || fail "undrain $nic"
}

# descriptors_above PID N: it has a descriptor with this number or a higher one.
descriptors_above() {
	local fd

	for fd in /proc/"$1"/fd/*; do ((${fd##*/} < $2)) || return 0; done
	return 1
}

# descriptors_none RANK, descriptors_back RANK: its process gets no new descriptor meanwhile. It
# fills the gaps itself, below a limit that is above all that it has: one below the number of the
# plugin's reserve would make the reserve useless, which no shortage of descriptors does.
descriptors_none() {
	local pid=${STREAM_PIDS[$1]} limit=3

	while descriptors_above "$pid" $limit; do
		limit=$((limit + 1))
		descriptors_above "$pid" $limit ||
			prlimit --pid "$pid" "--nofile=$limit:" ||
			fail "cannot limit the descriptors of rank $1"
	done
	: >"$STREAM_FOLDER/exhaust-of-$1"
	wait_for "[[ -e $STREAM_FOLDER/exhausted-of-$1 ]]" $((60 * FAULTS_SLOW)) ||
		stream_fail "rank $1 does not use up its descriptors"
}

descriptors_back() {
	prlimit --pid "${STREAM_PIDS[$1]}" "--nofile=$(ulimit -Sn):" ||
		fail "cannot give rank $1 descriptors"
	rm "$STREAM_FOLDER/exhausted-of-$1"
}

both_carry() { (($(share x1) >= 4 && $(share x2) >= 4)); }

# A cable is lost while a process, or both, have no descriptor left. The other cable is enough, if
# it is up by then: one that still comes back from the last fault needs descriptors for that.
fault_descriptors() {
	local rank ranks

	draw 3
	ranks=$([[ $DRAWN == 2 ]] && echo 0 1 || echo "$DRAWN")
	if ! wait_for both_carry $((30 * FAULTS_SLOW)); then
		fault_cable "$1"
		SAID="one cable carries nothing, $SAID"
		return
	fi
	for rank in $ranks; do descriptors_none "$rank"; done
	fault_cable "$1"
	SAID="no descriptors at rank $ranks, $SAID"
	moves $SOAK_MOVES_MS
	for rank in $ranks; do descriptors_back "$rank"; done
}

# A cable becomes slow, at both ends.
fault_slow() {
	draw_ms
	SAID="$1 carries 1 Mbit/s for $MS ms"
	mesh_shape a "$1" 1mbit
	mesh_shape b "$1" 1mbit
	pause "$(seconds "$MS")"
	mesh_shape a "$1" "$SOAK_RATE"
	mesh_shape b "$1" "$SOAK_RATE"
}

# The guest is stopped while a cable is lost, and for a while after that.
fault_stopped() {
	local said

	kill -STOP "$GUEST_PID" || guest_fail "has ended"
	fault_cable "$1"
	said="the guest stopped, $SAID"
	moves $SOAK_MOVES_MS
	draw_ms
	pause "$(seconds "$MS")"
	kill -CONT "$GUEST_PID"
	guest_moves
	SAID="$said; it runs $MS ms later, and gets something after $MOVED_MS ms"
}

# The guest is killed, half of the times while a cable is lost. Both nodes say why, close what they
# have with it, and get the next guest.
fault_ended() {
	local began before after folder=$GUEST_FOLDER words='node c .*its process.* ended'

	draw 2
	mapfile -t before < <(warned "$words")
	: >"$folder/killed"
	kill -KILL "$GUEST_PID" || guest_fail "has ended"
	began=$(now_ms)
	wait "$GUEST_PID" 2>/dev/null
	SAID="guest $GUEST_NUMBER killed"
	if ((DRAWN)); then
		fault_cable "$1"
		SAID="guest $GUEST_NUMBER killed, $SAID"
	fi
	wait_for "[[ -e $folder/closed-by-0 && -e $folder/closed-by-1 ]]" \
		$((SOAK_ENDS_S * FAULTS_SLOW)) ||
		guest_fail "was killed, and a rank has not closed its connections"
	SAID="$SAID; closed after $(($(now_ms) - began)) ms"
	mapfile -t after < <(warned "$words")
	((after[0] > before[0] && after[1] > before[1])) ||
		guest_fail "was killed, and a rank has not said so"
	moves $SOAK_MOVES_MS
	guest_start
}

# --- the guest -----------------------------------------------------------------------------------

guest_fail() {
	echo "--- guest $GUEST_NUMBER"
	grep -v ' INFO path: ' "$GUEST_FOLDER/out" | tail -n 25
	stream_fail "guest $GUEST_NUMBER: $*"
}

# visits: the messages that each rank has received from guests, then what the guest has received.
visits() {
	local rank count

	for rank in 0 1; do
		read -r _ _ count <"$STREAM_FOLDER/progress-of-$rank"
		echo "$count"
	done
	read -r count _ 2>/dev/null <"$GUEST_FOLDER/progress-of-2"
	echo "${count:-0}"
}

# guest_moves: the guest and both ranks receive something from each other from now on.
guest_moves() {
	local before after began

	mapfile -t before < <(visits)
	began=$(now_ms)
	while :; do
		MOVED_MS=$(($(now_ms) - began))
		mapfile -t after < <(visits)
		((after[0] > before[0] && after[1] > before[1] && after[2] > before[2])) && return
		guest_is_there
		! too_late $MOVED_MS $SOAK_MOVES_MS ||
			guest_fail "nothing has moved for $MOVED_MS ms"
		pause 0.02
	done
}

guest_is_there() { kill -0 "$GUEST_PID" 2>/dev/null || guest_fail "has ended"; }

# guest_start: the next one; half of them relay.
guest_start() {
	local relay=job

	draw 2
	((DRAWN)) || relay=off
	GUEST_NUMBER=$((GUEST_NUMBER + 1))
	GUEST_FOLDER=$STREAM_FOLDER/guest-$GUEST_NUMBER
	mkdir "$GUEST_FOLDER" || fail "cannot make $GUEST_FOLDER"
	mesh_spawn c "$GUEST_FOLDER/out" env "${SOAK_ENV[@]}" NCCL_MESH_RELAY=$relay \
		"$MESH_BUILD/functional/all_sizes" "$MESH_BUILD/libnccl-net-mesh.so" \
		"$GUEST_FOLDER" 2 2 0 "${STREAM_MOST:-1000000}" $((STREAM_SEED + GUEST_NUMBER))
	GUEST_PID=$MESH_SPAWNED
	wait_for "[[ -e $GUEST_FOLDER/progress-of-2 ]]" $((60 * FAULTS_SLOW)) ||
		guest_fail "does not connect"
	guest_moves
}

guest_ends() {
	wait_for "! kill -0 $GUEST_PID 2>/dev/null" $((90 * FAULTS_SLOW)) ||
		guest_fail "does not end"
	wait "$GUEST_PID" || guest_fail "ended with status $?"
}

# --- the run -------------------------------------------------------------------------------------

soak_init() {
	local nic tool

	for tool in nft prlimit; do
		command -v $tool >/dev/null ||
			skip "'$tool' is missing (Debian, Ubuntu: nftables, util-linux)"
	done
	cables_init 2 "$SOAK_RATE"
	mesh_node c
	mesh_link a x3 10.77.3.1/24 c ca 10.77.3.2/24
	mesh_link b x4 10.77.4.1/24 c cb 10.77.4.2/24
	for nic in "a x3" "b x4" "c ca" "c cb"; do
		# shellcheck disable=SC2086 # two words
		mesh_shape $nic $SOAK_GUEST_RATE
	done
}

# soak FAULTS SEED [PROVIDER]: until so many faults are over; the streams must not notice. The
# cables are made once.
soak() {
	local i nic kind provider=${3:-tcp}

	RANDOM=$2
	[[ ${CABLES_BYTES_S:-} ]] || soak_init
	STREAM_SEED=$2
	note "over $provider"
	SOAK_STATS=$FAULTS/stats
	SOAK_ENV=(
		NCCL_MESH_DEAD_PEER_TIMEOUT=3 "NCCL_MESH_PROVIDER=$provider"
		"NCCL_MESH_STATS_DIR=$SOAK_STATS" MASTER_ADDR=127.0.0.1 MASTER_PORT=29500
	)
	stream "soak-${provider#*;}" 0 "${SOAK_ENV[@]}" ALL_SIZES_GUESTS=2
	GUEST_NUMBER=-1
	guest_start
	for ((i = 1; i <= $1; i++)); do
		draw 2
		nic=x$((DRAWN + 1))
		draw ${#SOAK_KINDS[@]}
		kind=${SOAK_FIRST[i - 1]:-${SOAK_KINDS[DRAWN]}}
		"fault_$kind" $nic
		moves $SOAK_MOVES_MS
		guest_is_there
		note "$i of $1: $SAID; something arrives after $MOVED_MS ms"
		draw 1000
		pause "0.$(printf %03d "$DRAWN")"
	done
	# After the pause of a cable that has flapped both are used, though not filled by this mix.
	CABLES_ENOUGH=25
	for nic in x1 x2; do carries $nic 15000; done
	: >"$GUEST_FOLDER/stop"
	stream_stop
	stream_ends
	guest_ends
	note "$(grep -h 'bytes are right' "$STREAM_FOLDER"/rank*.out "$GUEST_FOLDER/out" |
		paste -sd';')"
}
