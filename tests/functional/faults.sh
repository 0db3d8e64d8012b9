# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# faults.sh - fault_driver's scripts and the processes that play them. To be sourced by tests.
#
#	faults_init; mesh_up triangle
#	play b survivor <<-END		a process named survivor on node b, in the background
#		accepts 0 $FAULTS/handle 1M
#		...
#		drop 0
#	END
#	ended survivor			waits until it has ended, and wants exit status 0
#	said survivor WARN "lost node a"

# shellcheck source=tests/functional/lib.sh
declare -F mesh_init >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Seconds after which a process that has not ended hangs.
FAULTS_TIMEOUT=${FAULTS_TIMEOUT:-300}
# How many times slower the build under test may be.
FAULTS_SLOW=1
[[ $MESH_BUILD != *sanitize* ]] || FAULTS_SLOW=5
# Variables for every process. Small, so that a test of what they bound does not take long.
FAULTS_ENV=(
	"NCCL_MESH_CONNECT_TIMEOUT=6" "NCCL_MESH_ACCEPT_TIMEOUT=6" "NCCL_MESH_DEAD_PEER_TIMEOUT=3"
	"NCCL_MESH_RECOVERY_TIMEOUT=3"
)
declare -A FAULTS_PID=() # name -> process

# faults_init: as mesh_init; makes the folder $FAULTS for handles, scripts and logs.
faults_init() {
	FAULTS=$MESH_RESULTS/$(basename "$0" .sh).files
	rm -rf "$FAULTS"
	mkdir -p "$FAULTS" || fail "cannot make $FAULTS"
	[[ -x $MESH_BUILD/functional/fault_driver ]] || fail "fault_driver is not built"
	mesh_init
}

# ms N: a bound of N milliseconds for this build.
ms() { echo $(($1 * FAULTS_SLOW)); }

# play_bare NODE NAME [PLUGIN]: a process that plays the script on standard input, with another
# build of the plugin if one is named.
play_bare() {
	cat >"$FAULTS/$2.script"
	mesh_spawn "$1" "$FAULTS/$2.log" env "${FAULTS_ENV[@]}" \
		"$MESH_BUILD/functional/fault_driver" \
		"${3:-$MESH_BUILD/libnccl-net-mesh.so}" "$FAULTS/$2.script"
	FAULTS_PID[$2]=$MESH_SPAWNED
}

# play NODE NAME [PLUGIN]: as play_bare. A script that calls the plugin before it has context 0 gets
# "init 0" before it, one that leaves it open "finalize 0" behind it, and some words stand for
# several lines:
#	accepts N HANDLE [SIZE]		listens at the file HANDLE, and accepts comm N
#	connects N HANDLE [SIZE]	waits for that file, and connects comm N to it
#	room N SIZE [poison]		buffer N, registered for comm N
#	drop N...			deregisters and closes each comm
# A comm with a SIZE has such a buffer, which at the receiver is poisoned.
play() {
	local script

	script=$(awk '
		function line(text) {
			lines[++num] = text
			if (!match(text, /(^|[ \t])(init|finalize) /)) return
			last = text ~ /init /
			if (!called++) first = last
		}
		function room(n, size, poison) {
			line("buffer " n " " size)
			if (poison) line("poison " n)
			line("reg " n " " n " " n)
		}
		$1 == "accepts" {
			line("listen " $2 " " $3)
			line("accept " $2 " " $2)
			if (NF > 3) room($2, $4, 1)
			next
		}
		$1 == "connects" {
			line("await " $3)
			line("connect " $2 " " $3)
			if (NF > 3) room($2, $4, 0)
			next
		}
		$1 == "room" {room($2, $3, NF > 3); next}
		$1 == "drop" {
			for (i = 2; i <= NF; i++) line("dereg " $i)
			for (i = 2; i <= NF; i++) line("close " $i)
			next
		}
		{line($0)}
		END {
			if (!num) exit 1
			if (!first) print "init 0"
			for (i = 1; i <= num; i++) print lines[i]
			if (!called || last) print "finalize 0"
		}') || fail "no script for $2"
	play_bare "$@" <<<"$script"
}

# two_ways: nodes a and b, and p and r, each of which has a cable to both.
two_ways() {
	mesh_node a b p r
	mesh_link a ap 10.77.1.1/24 p pa 10.77.1.2/24
	mesh_link p pb 10.77.2.1/24 b bp 10.77.2.2/24
	mesh_link a ar 10.77.3.1/24 r ra 10.77.3.2/24
	mesh_link r rb 10.77.4.1/24 b br 10.77.4.2/24
}

# routes_over_r: r's kernel forwards there, and those of a and b have the routes.
routes_over_r() {
	mesh_forward r
	mesh_route a 10.77.4.0/24 10.77.3.2 ar
	mesh_route b 10.77.3.0/24 10.77.4.1 br
}

# relays NODE NAME: a process that only relays, until the file "over" is there.
relays() {
	play "$1" "$2" <<-END
		limit 300000
		touch $FAULTS/relays.$2
		await $FAULTS/over
	END
	arrives "relays.$2"
}

# meet listen|connect SIZE...: the lines of a script that makes comm 0 with the process that plays
# the other role, once both have started: no timeout runs while the other process starts. Each SIZE
# is a buffer, registered for it: buffer 0 with registration 0, and so on. A receiver's are
# poisoned.
meet() {
	local n=0 size

	if [[ $1 == listen ]]; then
		printf '%s\n' "listen 0 $FAULTS/handle" "await $FAULTS/handle.met" "accept 0 0"
	else
		printf '%s\n' "await $FAULTS/handle" "touch $FAULTS/handle.met" \
			"connect 0 $FAULTS/handle"
	fi
	for size in "${@:2}"; do
		echo "buffer $n $size"
		[[ $1 != listen ]] || echo "poison $n"
		echo "reg $n 0 $n"
		((++n))
	done
}

# signal NAME SIGNAL
signal() { kill "-$2" "${FAULTS_PID[$1]}" || fail "$1 has ended"; }

# faults_show: what every process of the test said last.
faults_show() {
	local log

	for log in "$FAULTS"/*.log; do
		echo "--- $(basename "$log" .log)"
		tail -n 25 "$log"
	done
	fail "$@"
}

# ended NAME [STATUS]: waits for its end; status 137 for one that was killed.
ended() {
	local status

	wait_for "! kill -0 ${FAULTS_PID[$1]} 2>/dev/null" $((FAULTS_TIMEOUT * FAULTS_SLOW)) ||
		faults_show "$1 does not end"
	wait "${FAULTS_PID[$1]}" 2>/dev/null
	status=$?
	((status == ${2:-0})) || faults_show "$1 ended with status $status, not ${2:-0}"
}

# handle_port FILE: the control port of a handle (src/wire/handle.c).
handle_port() { od -An -tu2 -j28 -N2 "$1" | tr -d ' '; }

# silence NODE NIC: the node drops all that comes over this NIC, which has its carrier all the same,
# until silence_end NODE.
silence() {
	on "$1" nft add table inet silence
	on "$1" nft add chain inet silence in '{ type filter hook input priority 0 ; }'
	on "$1" nft add rule inet silence in iifname "$2" drop
}

silence_end() { on "$1" nft delete table inet silence; }

# knock NODE ADDRESS HANDLE: a connection to the control listener there, as a peer's, which has the
# process open the NIC's domain.
knock() { on "$1" bash -c "exec 3<>/dev/tcp/$2/$(handle_port "$3")" || fail "cannot knock at $2"; }

# arrives FILE...: waits until each is in the test's folder.
arrives() {
	local file

	for file in "$@"; do
		wait_for "[[ -e $FAULTS/$file ]]" $((60 * FAULTS_SLOW)) ||
			faults_show "$file does not come"
	done
}

# stands NAME: waits until the process has come to its script's "stop".
stands() {
	wait_for "grep -q '^State:.T' /proc/${FAULTS_PID[$1]}/status" $((60 * FAULTS_SLOW)) ||
		faults_show "$1 does not stop"
}

# said NAME LEVEL REGEX, unsaid NAME LEVEL REGEX: what the plugin wrote into NCCL's log.
said() {
	grep -Eq "^$2 .*($3)" "$FAULTS/$1.log" || faults_show "$1 did not say: $2 $3"
}

unsaid() {
	! grep -Eq "^$2 .*($3)" "$FAULTS/$1.log" || faults_show "$1 said: $2 $3"
}
