# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# cables.sh - two nodes with cables of one rate, and streams of all sizes between them while cables
# break. To be sourced by tests.
#
#	cables_init 2 200mbit		nodes a and b, with NICs x1 and x2 at each
#	stream NAME SECONDS [VAR=...]	starts a rank at each node; SECONDS 0: until stream_stop
#	moves 1000			both ranks receive within so many milliseconds
#	carries x2 1000			NIC x2 carries its share, both ways
#	stream_ends			both ranks end, without an error
#	stream_breaks 0 'lost' 2000	rank 0 ends with an error within so many milliseconds

# shellcheck source=tests/functional/faults.sh
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Percent of what a cable can carry that count as its share.
CABLES_ENOUGH=60
# Percent of a core without which a share says nothing.
CABLES_CORE=80
# How many times longer everything may take while others have the cores.
CABLES_BUSY=5

cables_init() {
	local i node

	faults_init
	mesh_node a b
	for ((i = 1; i <= $1; i++)); do
		mesh_link a x$i 10.77.$i.1/24 b x$i 10.77.$i.2/24
		for node in a b; do mesh_shape $node x$i "$2"; done
	done
	CABLES_BYTES_S=$((${2%mbit} * 1000000 / 8))
}

# too_late MS LIMIT: more than LIMIT milliseconds have passed, also for a build that is slow, and on
# a machine that is busy.
too_late() {
	local limit=$(($2 * FAULTS_SLOW))

	(($1 > limit)) || return 1
	(($1 > CABLES_BUSY * limit || $(core_share) >= CABLES_CORE))
}

stream() {
	local rank node

	STREAM=$1
	STREAM_FOLDER=$FAULTS/$1
	rm -rf "$STREAM_FOLDER"
	mkdir -p "$STREAM_FOLDER"
	STREAM_PIDS=()
	for rank in 0 1; do
		node=$([[ $rank == 0 ]] && echo a || echo b)
		mesh_spawn "$node" "$STREAM_FOLDER/rank$rank.out" env "${@:3}" \
			"$MESH_BUILD/functional/all_sizes" "$MESH_BUILD/libnccl-net-mesh.so" \
			"$STREAM_FOLDER" $rank "${STREAM_COMMS:-4}" "$2" "${STREAM_MOST:-1000000}" \
			"${STREAM_SEED:-1}"
		STREAM_PIDS+=("$MESH_SPAWNED")
	done
	wait_for "[[ -e $STREAM_FOLDER/progress-of-0 && -e $STREAM_FOLDER/progress-of-1 ]]" \
		$((60 * FAULTS_SLOW)) ||
		stream_fail "the ranks do not connect"
}

# stream_fail WORDS: shows the end of both logs.
stream_fail() {
	local rank

	for rank in 0 1; do
		echo "--- $STREAM, rank $rank"
		grep -v ' INFO path: ' "$STREAM_FOLDER/rank$rank.out" | tail -n 25
	done
	fail "$STREAM: $*"
}

# received: the messages that each rank has received, as two numbers.
received() {
	local rank count rest

	for rank in 0 1; do
		read -r count rest <"$STREAM_FOLDER/progress-of-$rank"
		echo "$count"
	done
}

# moves MS: each rank receives something within MS milliseconds from now; notes nothing.
# shellcheck disable=SC2034 # MOVED_MS is for the caller
moves() {
	local before after began

	mapfile -t before < <(received)
	began=$(now_ms)
	while :; do
		MOVED_MS=$(($(now_ms) - began))
		mapfile -t after < <(received)
		((after[0] > before[0] && after[1] > before[1])) && return
		! too_late $MOVED_MS "$1" || stream_fail "nothing has moved for $MOVED_MS ms"
		pause 0.02
	done
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# share NIC: percent of what it can that the NIC carries now, of the node where it is less.
share() {
	local node before after least=100 began ms

	declare -A before
	began=$(now_ms)
	for node in a b; do before[$node]=$(mesh_bytes $node "$1" tx); done
	pause 0.25
	ms=$(($(now_ms) - began))
	for node in a b; do
		after=$(mesh_bytes $node "$1" tx)
		after=$((100 * (after - before[$node]) / (CABLES_BYTES_S * ms / 1000)))
		((after >= least)) || least=$after
	done
	echo $least
}

# carries NIC MS: it carries its share of both directions within MS milliseconds from now.
# shellcheck disable=SC2034 # CARRIED is for the caller
carries() {
	local began ms

	began=$(now_ms)
	while :; do
		ms=$(($(now_ms) - began))
		CARRIED=$(share "$1")
		((CARRIED < CABLES_ENOUGH)) || break
		too_late $ms "$2" || continue
		((CARRIED < 10 || $(core_share) >= CABLES_CORE)) ||
			skip "the machine is busy: $1 carries $CARRIED % only"
		stream_fail "after $ms ms $1 carries $CARRIED % only"
	done
	CARRIED_MS=$ms
}

stream_stop() { : >"$STREAM_FOLDER/stop"; }

stream_ends() {
	local rank

	for rank in 0 1; do
		wait_for "! kill -0 ${STREAM_PIDS[rank]} 2>/dev/null" $((90 * FAULTS_SLOW)) ||
			stream_fail "rank $rank does not end"
		wait "${STREAM_PIDS[rank]}" || stream_fail "rank $rank ended with status $?"
		grep -q 'bytes are right' "$STREAM_FOLDER/rank$rank.out" ||
			stream_fail "rank $rank has not said that all is right"
	done
}

# stream_breaks RANK WORDS MS: the rank ends with an error within MS, and its log has the words. It
# gets 8 s more for a busy machine, which is still less than the timeout that must not decide.
stream_breaks() {
	local began

	began=$(now_ms)
	wait_for "! kill -0 ${STREAM_PIDS[$1]} 2>/dev/null" $(($3 * FAULTS_SLOW / 1000 + 8)) ||
		stream_fail "rank $1 does not end"
	! wait "${STREAM_PIDS[$1]}" || stream_fail "rank $1 ended without an error"
	grep -q "WARN .*$2" "$STREAM_FOLDER/rank$1.out" || stream_fail "rank $1 did not say: $2"
	note "$STREAM: rank $1 ends after $(($(now_ms) - began)) ms: $(grep "WARN .*$2" \
		"$STREAM_FOLDER/rank$1.out" | head -1 | cut -d' ' -f2- | cut -c1-150)"
}

# warned TEXT: in how many WARN lines of each rank it is, as two numbers.
warned() {
	local rank

	for rank in 0 1; do
		grep -c "WARN .*$1" "$STREAM_FOLDER/rank$rank.out" || true
	done
}
