#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_peer_killed.sh - the peer dies, stops or is cut off at every step: the survivor gets an error
# in words within a bound, and its connections with others go on.
#
# The victim is on node a, the survivor on b. Bystanders of the survivor: one more process on a,
# which sends to it, and one on c, which receives from it.
# seconds: 45
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

ADDRESS='10\.77\.1\.1'
DEAD=3 # seconds; NCCL_MESH_DEAD_PEER_TIMEOUT in faults.sh
LOST=$((DEAD * 1000 + 9000)) # ms within which the survivor must know
AT_ONCE=10000 # ms, where the end of a process decides, not a timeout of $PATIENT

# For bystanders, and for cases that no timeout may end.
PATIENT=(
	NCCL_MESH_CONNECT_TIMEOUT=60 NCCL_MESH_ACCEPT_TIMEOUT=60 NCCL_MESH_DEAD_PEER_TIMEOUT=30
)

# begin CASE: fresh files, and the bystander on c.
begin() {
	local FAULTS_ENV=("${PATIENT[@]}")

	CASE=$1
	rm -f "$FAULTS"/{handle,third,sibling,calm,go,received,done,down,closed}*
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

# finish VICTIM_STATUS REGEX: all processes ended as expected, and the survivor logged why.
finish() {
	ended survivor
	ended third
	ended sibling
	ended victim "$1"
	said survivor WARN "$2"
	unsaid third WARN "."
	unsaid sibling WARN "."
	note "$CASE: $(grep -E "^WARN .*($2)" "$FAULTS/survivor.log" | head -1)"
}

# lines ROLE: how the comm of this role begins, 64 MiB registered for it; "-": with nothing.
lines() { [[ $1 == - ]] || meet "$1" 64M; }

# kills CASE TIMEOUTS STATUS WORDS ROLE VICTIM ROLE SURVIVOR [BEFORE [MEANWHILE]]: each plays these
# lines in its role. BEFORE happens before the survivor starts, MEANWHILE when it has. The victim
# ends with STATUS, and the survivor says WORDS. TIMEOUTS are "patient" where no timeout may end it.
kills() {
	local ends="" FAULTS_ENV=("${FAULTS_ENV[@]}")

	[[ $2 != patient ]] || FAULTS_ENV=("${PATIENT[@]}")
	begin "$1"
	play a victim <<<"$(lines "$5")"$'\n'"$6"
	${9:-}
	[[ $7 == - ]] || ends="within $(ms $LOST) dereg 0
		within $(ms $LOST) close 0"
	[[ $7 != listen ]] || ends+=$'\n'"close-listen 0"
	survive <<<"$(lines "$7")"$'\n'"$8"$'\n'"$ends"$'\n'"touch $FAULTS/closed"
	${10:-}
	finish "$3" "$4"
}

stands_listening() {
	arrives handle
	stands victim
}

killed_at_go() {
	arrives go
	signal victim KILL
	touch "$FAULTS/done"
}

is_dead() { ended victim 137; }

goes_when_dead() {
	is_dead
	touch "$FAULTS/go"
}

continues_at_the_end() {
	arrives closed
	signal victim CONT
}

# The survivor posts once the victim stands.
stands_and_continues() {
	stands victim
	touch "$FAULTS/go"
	continues_at_the_end
}

while_connecting() {
	local at_once came

	at_once="within $(ms $AT_ONCE)"
	kills "killed after listen" patient 137 "$ADDRESS" - "listen 0 $FAULTS/handle
		die" - "await $FAULTS/handle
		! $at_once connect 0 $FAULTS/handle
		close 0" is_dead
	kills "killed while the survivor connects" patient 137 "$ADDRESS" - "listen 0 $FAULTS/handle
		stop" - "thread 3 ! $at_once connect 0 $FAULTS/handle
		pause 500
		touch $FAULTS/go
		join 3
		close 0" stands_listening killed_at_go
	kills "stopped while the survivor connects" soon 0 "$ADDRESS" - "listen 0 $FAULTS/handle
		stop" - "! within $(ms 12000) connect 0 $FAULTS/handle
		close 0" stands_listening continues_at_the_end
	# The victim's engine may be ahead of its call: then a connector was there and has left.
	came="no rank connected|began to connect|was connecting"
	kills "killed when it had begun to connect" soon 137 \
		"($came) .*the listener on 10\.77\.1\.2/24" - "await $FAULTS/handle
		connect-calls 0 $FAULTS/handle 1
		die" - "listen 0 $FAULTS/handle
		await $FAULTS/go
		! within $(ms 12000) accept 0 0
		close 0
		close-listen 0" "" goes_when_dead
}

before_the_first_message() {
	local lost="lost node a \($ADDRESS\)"

	kills "killed after accept" patient 137 "$lost" listen die connect "post 0 0 0 32M
		! within $(ms $AT_ONCE) test 0"
	# A loader of training data, which lives on for a while, has all that its parent has open.
	kills "killed after it had forked a child" soon 137 "$lost" listen "fork $FAULTS/calm
		die" connect "post 0 0 0 32M
		! within $(ms 2000) test 0"
	kills "killed after connect, with a receive posted" patient 137 "$lost" connect \
		"await $FAULTS/go
		die" listen "post 0 0 0 32M
		touch $FAULTS/go
		! within $(ms $AT_ONCE) test 0"
}

in_a_transfer() {
	local lost="lost node a \($ADDRESS\)"

	mesh_shape a ab 200mbit
	kills "sender killed, the receive half written" patient 137 "$lost" connect "post 0 0 0 64M
		test 0" listen "post 0 0 0 64M
		thread 3 ! test 0
		written 0 2M
		touch $FAULTS/go
		join 3 $(ms $AT_ONCE)" "" killed_at_go
	mesh_shape a ab none
	mesh_shape b ba 200mbit
	# The failed write and the end of the control connection come at the same moment: the first
	# that is seen is reported.
	kills "receiver killed, writes in flight" patient 137 \
		"$lost|to node a over ba: message .* was not delivered" listen "post 0 0 0 64M
		thread 1 ? test 0
		written 0 2M
		touch $FAULTS/go
		join 1" connect "post 0 0 0 64M
		thread 3 ! test 0
		await $FAULTS/go
		post 1 0 0 4096
		post 2 0 0 4M
		await $FAULTS/done
		join 3 $(ms $AT_ONCE)" "" killed_at_go
	mesh_shape b ba none
	kills "stopped, and the survivor closes" soon 0 "node a \($ADDRESS\).*did not answer" \
		listen "post 0 0 0 4M
		stop
		? within $(ms 20000) test 0
		? dereg 0
		close 0" connect "await $FAULTS/go
		post 0 0 0 4M
		pause 20" "" stands_and_continues
}

# --- the cable ----------------------------------------------------------------------------------

# The bystander on a shares the cable, so it is lost as well: only c must not notice.
link_down() {
	begin "link down on the peer's side"
	play a victim <<-END
		$(meet connect 64M)
		transfer 0 1M 5 3
		touch $FAULTS/go
		post 0 0 0 1M
		! within $(ms $LOST) test 0
		dereg 0
		within $(ms $LOST) close 0
	END
	play b survivor <<-END
		connects 901 $FAULTS/third 256K
		thread 2 stream 901 32K $FAULTS/calm 7
		$(meet listen 64M)
		transfer 0 1M 5 3
		touch $FAULTS/received
		await $FAULTS/down
		post 1 0 0 1M
		! within $(ms $LOST) test 1
		within $(ms $LOST) dereg 0
		within $(ms $LOST) close 0
		touch $FAULTS/calm
		join 2
		within $(ms $LOST) close 901
	END
	arrives go received
	"$@"
	touch "$FAULTS/down"
	ended survivor
	ended victim
	ended third
	said survivor WARN "lost node a \($ADDRESS\)"
	said victim WARN "lost node b \(10\.77\.1\.2\)"
	unsaid third WARN "."
	note "$CASE: $(grep -E "^WARN .*lost" "$FAULTS/survivor.log" | head -1)"
}

faults_init
mesh_up triangle patched
while_connecting
before_the_first_message
in_a_transfer
link_down mesh_carrier a ab down
