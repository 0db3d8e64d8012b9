#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_peer_killed.sh - the peer's process is killed or stopped while bytes move: the survivor gets
# an error in words within a bound, and its connections with others go on. What is reported while a
# connection is made is in tests/world/test_world_connects.c.
#
# The victim is on node a, the survivor on b. Bystanders of the survivor: one more process on a,
# which sends to it, and one on c, which receives from it.
# seconds: 20
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

ADDRESS='10\.77\.1\.1'
LOST_NODE="lost node a \\($ADDRESS\\)"
DEAD=3 # seconds; NCCL_MESH_DEAD_PEER_TIMEOUT in faults.sh
LOST=$((DEAD * 1000 + 9000)) # ms within which the survivor must know
AT_ONCE=10000 # ms, where the end of a process decides, not a timeout of $PATIENT

# For bystanders, and for cases that no timeout may end.
PATIENT=(
	NCCL_MESH_CONNECT_TIMEOUT=60 NCCL_MESH_ACCEPT_TIMEOUT=60 NCCL_MESH_DEAD_PEER_TIMEOUT=30
)

# begin: fresh files, and the bystander on c.
begin() {
	local FAULTS_ENV=("${PATIENT[@]}")

	rm -f "$FAULTS"/{handle,third,sibling,calm,go,done,closed}*
	play c third <<-END
		accepts 0 $FAULTS/third 256K
		stream 0 32K none 7
		drop 0
		close-listen 0
	END
}

# play_sibling: the bystander on a.
play_sibling() {
	local FAULTS_ENV=("${PATIENT[@]}")

	play a sibling <<-END
		touch $FAULTS/sibling.there
		connects 0 $FAULTS/sibling 256K
		stream 0 5000 $FAULTS/calm 9
		drop 0
	END
}

# survive: the survivor with both bystanders; standard input is what it does about the victim.
survive() {
	play_sibling
	{
		cat <<-END
			init 0
			listen 900 $FAULTS/sibling
			await $FAULTS/sibling.there
			accept 900 900
			connects 901 $FAULTS/third
			buffer 900 256K
			buffer 901 256K
			reg 900 900 900
			reg 901 901 901
			thread 1 stream 900 5000 none 9
			thread 2 stream 901 32K $FAULTS/calm 7
			pause 50
		END
		cat
		cat <<-END
			pause 300
			touch $FAULTS/calm
			join 1
			join 2
			dereg 900
			dereg 901
			within $(ms 5000) close 900
			within $(ms 5000) close 901
			close-listen 900
			within $(ms 3000) finalize 0
		END
	} >"$FAULTS/survivor.in"
	play b survivor <"$FAULTS/survivor.in"
}

# kills CASE TIMEOUTS STATUS WORDS VICTIM SURVIVOR MEANWHILE VICTIM'S SURVIVOR'S: the roles, listen
# or connect, then the function that runs meanwhile, and what each plays over a comm with 64 MiB.
# The victim ends with STATUS, and the survivor says WORDS. TIMEOUTS are "patient" where none may
# end it.
kills() {
	local ends FAULTS_ENV=("${FAULTS_ENV[@]}")

	[[ $2 != patient ]] || FAULTS_ENV=("${PATIENT[@]}")
	begin
	play a victim <<<"$(meet "$5" 64M)"$'\n'"$8"
	ends="within $(ms $LOST) dereg 0
		within $(ms $LOST) close 0"
	[[ $6 != listen ]] || ends+=$'\n'"close-listen 0"
	survive <<<"$(meet "$6" 64M)"$'\n'"$9"$'\n'"$ends"$'\n'"touch $FAULTS/closed"
	"$7"
	ended survivor
	ended third
	ended sibling
	ended victim "$3"
	said survivor WARN "$4"
	unsaid third WARN "."
	unsaid sibling WARN "."
	note "$1: $(grep -E "^WARN .*($4)" "$FAULTS/survivor.log" | head -1)"
}

killed_at_go() {
	arrives go
	signal victim KILL
	touch "$FAULTS/done"
}

# The survivor posts once the victim stands.
stands_and_continues() {
	stands victim
	touch "$FAULTS/go"
	arrives closed
	signal victim CONT
}

faults_init
mesh_up triangle
# A loader of training data, which lives on for a while, has all that its parent has open.
kills "killed after it had forked a child" soon 137 "$LOST_NODE" listen connect true \
	"fork $FAULTS/calm
	die" "post 0 0 0 32M
	! within $(ms 2000) test 0"
mesh_shape a ab 200mbit
kills "sender killed, the receive half written" patient 137 "$LOST_NODE" connect listen \
	killed_at_go "post 0 0 0 64M
	test 0" "post 0 0 0 64M
	thread 3 ! test 0
	written 0 2M
	touch $FAULTS/go
	join 3 $(ms $AT_ONCE)"
mesh_shape a ab none
mesh_shape b ba 200mbit
# The failed write and the end of the control connection come at the same moment: the first that is
# seen is reported.
kills "receiver killed, writes in flight" patient 137 \
	"$LOST_NODE|to node a over ba: message .* was not delivered" listen connect killed_at_go \
	"post 0 0 0 64M
	thread 1 ? test 0
	written 0 2M
	touch $FAULTS/go
	join 1" "post 0 0 0 64M
	thread 3 ! test 0
	await $FAULTS/go
	post 1 0 0 4096
	post 2 0 0 4M
	await $FAULTS/done
	join 3 $(ms $AT_ONCE)"
mesh_shape b ba none
kills "stopped, and the survivor closes" soon 0 "node a \($ADDRESS\).*did not answer" \
	listen connect \
	stands_and_continues "post 0 0 0 4M
	stop
	? within $(ms 20000) test 0
	? dereg 0
	close 0" "await $FAULTS/go
	post 0 0 0 4M
	pause 20"
