#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_liveness.sh - a link that is silent, or too small for large frames: both nodes judge it
# alike, in time, and with the reason that is true. One that is slow, or silent for less than the
# timeout while the kernels alone keep the connections, is not judged.
# seconds: 60
# long: tests/world: black-hole, small-packets, silent-for-less
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

DEAD=6 # seconds; NCCL_MESH_DEAD_PEER_TIMEOUT
# What docs/protocol/failures.md promises, in milliseconds, and the scripts' own polling.
EXACT=$((DEAD * 1000 + 500 + 100))
# A case takes longer on a loaded machine, and is then repeated; this only ends one that hangs.
BOUND=$((DEAD * 1000 + 10000))
ATTEMPTS=3

# The cable that fails, as both nodes' logs name it.
AB=ab BA=ba NET='10\.77\.1'

# timeouts DEAD: for every process from now on. A verdict is to end the comm, also where another
# cable could carry it on.
timeouts() {
	FAULTS_ENV=(
		"NCCL_MESH_CONNECT_TIMEOUT=20" "NCCL_MESH_ACCEPT_TIMEOUT=20"
		"NCCL_MESH_DEAD_PEER_TIMEOUT=$1" "NCCL_MESH_PROVIDER=${PROVIDER:-}"
		"NCCL_MESH_RECOVERY=off"
	)
}

# begin CASE [DEAD]
begin() {
	CASE=$1
	timeouts "${2:-$DEAD}"
	rm -f "$FAULTS"/{handle,back,go,down,failed,calm,done}*
}

# two SIZE SENDER RECEIVER: a sender on a and a receiver on b, with these lines of a script once
# their comm is made.
two() {
	play a sender <<-END
		$(meet connect "$1")
		$2
		drop 0
	END
	play b receiver <<-END
		$(meet listen "$1")
		$3
		drop 0
	END
}

two_end() {
	ended sender
	ended receiver
}

# in_time: what happened last did within the bound, at both ends.
in_time() {
	note "$CASE: sender failed after $SENDER_MS ms, receiver after $RECEIVER_MS ms"
	((SENDER_MS <= EXACT && RECEIVER_MS <= EXACT))
}

# attempts COMMAND...: until it succeeds. A limit that is too long is so each time, and so is a
# verdict that is wrong.
attempts() {
	local attempt

	for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
		! "$@" || return 0
		note "$CASE: attempt $attempt failed"
	done
	faults_show "$CASE: failed in each of $ATTEMPTS attempts; the bound is $EXACT ms"
}

# cut, heal NODE NIC: the cable of a mesh_cable forwards nothing, and every carrier stays.
cut() {
	local port

	read -ra port <<<"${MESH_PEER["$1 $2"]}"
	BRIDGE=$(ip -n "$MESH_PREFIX${port[0]}" -o link show dev "${port[1]}" |
		sed -n 's/.* master \([^ ]*\) .*/\1/p')
	ip -n "$MESH_PREFIX${port[0]}" link set "${port[1]}" nomaster || fail "cannot cut $1 $2"
}

heal() {
	local port

	read -ra port <<<"${MESH_PEER["$1 $2"]}"
	ip -n "$MESH_PREFIX${port[0]}" link set "${port[1]}" master "$BRIDGE" ||
		fail "cannot heal $1 $2"
}

# await_ms MS: the time passes that a fault lasts.
await_ms() { pause "$(($1 / 1000)).$(printf %03d $(($1 % 1000)))"; }

# --- pulled in mid-transfer -------------------------------------------------------------------

# failed_ms NAME: from the fault to the error.
failed_ms() { sed -n 's/^ok join: \([0-9]*\) ms$/\1/p' "$FAULTS/$1.log"; }

# pulled CASE BREAK MEND: on a's side of the cable.
pulled() {
	local name end

	begin "$1"
	mesh_shape a ab 200mbit
	end="await $FAULTS/down
		join 3 $(ms $BOUND)
		dereg 0
		within $(ms 2000) close 0
		finalize 0"
	play a sender <<-END
		$(meet connect 256M)
		post 0 0 0 256M
		thread 3 ! test 0
		$end
	END
	play b receiver <<-END
		$(meet listen 256M)
		post 0 0 0 256M
		thread 3 ! test 0
		written 0 2M
		touch $FAULTS/go
		$end
	END
	arrives go
	await_ms 700 # in the middle of the transfer, between two probes or not
	"$2" a $AB
	touch "$FAULTS/down"
	two_end
	said sender WARN "lost node b \($NET\.2\), reached from $AB \($NET\.1\): .*no answer"
	said receiver WARN "lost node a \($NET\.1\), reached from $BA \($NET\.2\): .*no answer"
	for name in sender receiver; do
		unsaid $name WARN "has not arrived|its process ended"
		(($(grep -c "^WARN .*\<\(lost\|cut\)\>" "$FAULTS/$name.log") == 1)) ||
			faults_show "$name: more than one line"
	done
	mesh_shape a ab none
	"$3" a $AB
	SENDER_MS=$(failed_ms sender) RECEIVER_MS=$(failed_ms receiver)
	in_time
}

# --- pulled with nothing to do ------------------------------------------------------------------

# idle_play [COMMAND...]: a sender and a receiver whose comm has nothing to do until "down" exists;
# then each does COMMAND.
idle_play() {
	local lines

	lines=$(printf '%s\n' "transfer 0 1M 3 5" "touch $FAULTS/go.@" "await $FAULTS/down" "$*")
	two 1M "${lines//@/sender}" "${lines//@/receiver}"
	arrives go.sender go.receiver
}

is_lost() { grep -q "no answer for $DEAD s: cable pulled" "$FAULTS/$1.log"; }

# question_ms NODE: milliseconds until the kernel there next asks on the control connection, which
# alone has keep-alive. Nothing if a question is on its way already.
question_ms() {
	on "$1" ss -Hto state established |
		sed -nE 's/.*timer:\(keepalive,([0-9.]+)(ms|sec),0\).*/\1 \2/p' |
		awk '{print int($2 == "sec" ? $1 * 1000 : $1)}' | sort -n | head -1
}

# idle CASE BREAK MEND: no request waits. The loss of the carrier alone shows that the cable is out;
# where every carrier stays, the kernel's next question is the first packet without an answer, and
# the bound counts from it.
idle() {
	local from sender=0 receiver=0

	begin "$1"
	idle_play
	await_ms 3300 # nothing has been sent for long
	"$2" a ab
	[[ $2 != cut ]] || { sender=$(question_ms a) receiver=$(question_ms b); }
	from=$(now_ms)
	wait_for "is_lost sender" $((BOUND / 1000)) ||
		faults_show "$CASE: the sender does not see it"
	SENDER_MS=$(($(now_ms) - from - ${sender:-0}))
	wait_for "is_lost receiver" $((BOUND / 1000)) ||
		faults_show "$CASE: the receiver does not see it"
	RECEIVER_MS=$(($(now_ms) - from - ${receiver:-0}))
	touch "$FAULTS/down"
	two_end
	"$3" a ab
	in_time
}

# --- a flap -----------------------------------------------------------------------------------

# all_well NAME...: waits for their ends. False if one has failed.
all_well() {
	local name failed=0

	for name in "$@"; do
		wait_for "! kill -0 ${FAULTS_PID[$name]} 2>/dev/null" \
			$((FAULTS_TIMEOUT * FAULTS_SLOW)) ||
			faults_show "$CASE: $name does not end"
		wait "${FAULTS_PID[$name]}" 2>/dev/null || failed=1
	done
	((failed == 0)) || return 1
	for name in "$@"; do unsaid "$name" WARN "."; done
}

# idle_flap BOUND_S MS: no comm waits, so the kernels alone keep the connections.
idle_flap() {
	begin "flap of $2 ms with nothing to do, bound $1 s" "$1"
	idle_play transfer 0 1M 3 5
	await_ms $(($1 * 700))
	cut a ab
	await_ms "$2"
	heal a ab
	await_ms 2000
	touch "$FAULTS/down"
	all_well sender receiver || return 1
	note "$CASE: no process failed"
}

# --- slow -------------------------------------------------------------------------------------

slow() {
	local from

	begin "64 kbit/s" 3
	two 160K "touch $FAULTS/go
		await $FAULTS/down
		limit 60000
		transfer 0 160K 1 5
		await $FAULTS/done" "await $FAULTS/down
		limit 60000
		transfer 0 160K 1 5
		touch $FAULTS/done"
	arrives go
	ip netns exec "${MESH_PREFIX}a" tc qdisc replace dev ab root tbf rate 64kbit burst 4kb \
		latency 2s || fail "no tbf"
	touch "$FAULTS/down"
	from=$(now_ms)
	all_well sender receiver || faults_show "$CASE: a process failed"
	note "$CASE: 160 KiB took $(($(now_ms) - from)) ms"
	mesh_shape a ab none
}

# --- large frames are lost ----------------------------------------------------------------------

black_hole() {
	local from name

	begin "large frames are lost"
	two 8M "touch $FAULTS/go
		await $FAULTS/down
		post 0 0 0 8M
		! within $(ms $((DEAD * 1000 + 4000))) test 0
		touch $FAULTS/failed.sender" "await $FAULTS/down
		post 0 0 0 8M
		! within $(ms $((DEAD * 1000 + 5000))) test 0
		touch $FAULTS/failed.receiver"
	arrives go
	on b nft "add table ip hole
		add chain ip hole in { type filter hook prerouting priority -300; }
		add rule ip hole in iifname ba meta length > 1000 counter drop" ||
		fail "nft does not take the rule"
	touch "$FAULTS/down"
	from=$(now_ms)
	for name in sender receiver; do
		arrives failed.$name
		note "$CASE: $name failed within $(($(now_ms) - from)) ms"
	done
	two_end
	said sender WARN "lost node b .*large frames"
	said receiver WARN "lost node a .*large frames"
	on b nft flush ruleset
}

# A second cable: the message names the one that failed, whichever end notices first.
one_of_two() {
	mesh_cable a ax 10.77.9.1/24 b bx 10.77.9.2/24
	mesh_shape a ax 200mbit
	AB=ax BA=bx NET='10\.77\.9'
	attempts pulled "one of two cables silent" cut heal
}

faults_init
mesh_up line 2 patched
all() {
	attempts idle "cable pulled with nothing to do" mesh_unplug mesh_plug
	attempts idle "cable silent with nothing to do" cut heal
	attempts idle_flap 4 3500
	slow
	if on b nft list ruleset >/dev/null 2>&1; then black_hole; fi
	one_of_two
}

"${@:-all}"
