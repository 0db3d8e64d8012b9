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

victim_connects() {
	play a victim <<-END
		$(meet connect 64M)
		$(cat)
	END
}

victim_listens() {
	play a victim <<-END
		$(meet listen 64M)
		$(cat)
	END
}

# survive_connected: survive, with comm 0 to the victim and 64 MiB registered for it.
survive_listening() {
	survive <<-END
		$(meet listen 64M)
		$(cat)
		within $(ms $LOST) dereg 0
		within $(ms $LOST) close 0
		close-listen 0
	END
}

survive_connecting() {
	survive <<-END
		$(meet connect 64M)
		$(cat)
		within $(ms $LOST) dereg 0
		within $(ms $LOST) close 0
		touch $FAULTS/closed
	END
}

# --- while the connection is made ---------------------------------------------------------------

killed_after_listen() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "killed after listen"
	play a victim <<-END
		listen 0 $FAULTS/handle
		die
	END
	ended victim 137
	survive <<-END
		await $FAULTS/handle
		! within $(ms $AT_ONCE) connect 0 $FAULTS/handle
		close 0
	END
	finish 137 "$ADDRESS"
}

killed_while_connecting() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "killed while the survivor connects"
	play a victim <<-END
		listen 0 $FAULTS/handle
		stop
	END
	arrives handle
	stands victim
	survive <<-END
		thread 3 ! within $(ms $AT_ONCE) connect 0 $FAULTS/handle
		pause 500
		touch $FAULTS/go
		join 3
		close 0
	END
	arrives go
	signal victim KILL
	finish 137 "$ADDRESS"
}

stopped_while_connecting() {
	begin "stopped while the survivor connects"
	play a victim <<-END
		listen 0 $FAULTS/handle
		stop
	END
	arrives handle
	stands victim
	survive <<-END
		! within $(ms 12000) connect 0 $FAULTS/handle
		close 0
		touch $FAULTS/done
	END
	arrives "done"
	signal victim CONT
	finish 0 "$ADDRESS"
}

killed_as_connector() {
	begin "killed when it had begun to connect"
	play a victim <<-END
		await $FAULTS/handle
		connect-calls 0 $FAULTS/handle 1
		die
	END
	survive <<-END
		listen 0 $FAULTS/handle
		await $FAULTS/go
		! within $(ms 12000) accept 0 0
		close 0
		close-listen 0
	END
	ended victim 137
	touch "$FAULTS/go"
	# The victim's engine may be ahead of its call: then a connector was there and has left.
	local came="no rank connected|began to connect|was connecting"
	finish 137 "($came) .*the listener on 10\.77\.1\.2/24"
}

# --- before the first message --------------------------------------------------------------------

killed_after_accept() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "killed after accept"
	victim_listens <<<"die"
	survive_connecting <<-END
		post 0 0 0 32M
		! within $(ms $AT_ONCE) test 0
	END
	finish 137 "lost node a \($ADDRESS\)"
}

# A loader of training data, which lives on for a while, has all descriptors of its parent's.
killed_beside_a_child() {
	begin "killed after it had forked a child"
	victim_listens <<-END
		fork $FAULTS/calm
		die
	END
	survive_connecting <<-END
		post 0 0 0 32M
		! within $(ms 2000) test 0
	END
	finish 137 "lost node a \($ADDRESS\)"
}

killed_after_connect() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "killed after connect, with a receive posted"
	victim_connects <<-END
		await $FAULTS/go
		die
	END
	survive_listening <<-END
		post 0 0 0 32M
		touch $FAULTS/go
		! within $(ms $AT_ONCE) test 0
	END
	finish 137 "lost node a \($ADDRESS\)"
}

# --- in the middle of a transfer ---------------------------------------------------------------

sender_killed() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "sender killed, the receive half written"
	mesh_shape a ab 200mbit
	victim_connects <<-END
		post 0 0 0 64M
		test 0
	END
	survive_listening <<-END
		post 0 0 0 64M
		thread 3 ! test 0
		written 0 2M
		touch $FAULTS/go
		join 3 $(ms $AT_ONCE)
	END
	arrives go
	signal victim KILL
	finish 137 "lost node a \($ADDRESS\)"
	mesh_shape a ab none
}

receiver_killed() {
	local FAULTS_ENV=("${PATIENT[@]}")

	begin "receiver killed, writes in flight"
	mesh_shape b ba 200mbit
	victim_listens <<-END
		post 0 0 0 64M
		thread 1 ? test 0
		written 0 2M
		touch $FAULTS/go
		join 1
	END
	survive_connecting <<-END
		post 0 0 0 64M
		thread 3 ! test 0
		await $FAULTS/go
		post 1 0 0 4096
		post 2 0 0 4M
		await $FAULTS/done
		join 3 $(ms $AT_ONCE)
	END
	arrives go
	signal victim KILL
	touch "$FAULTS/done"
	# The failed write and the end of the control connection come at the same moment: the first
	# that is seen is reported.
	finish 137 "lost node a \($ADDRESS\)|to node a over ba: message .* was not delivered"
	mesh_shape b ba none
}

stopped_during_close() {
	begin "stopped, and the survivor closes"
	victim_listens <<-END
		post 0 0 0 4M
		stop
		? within $(ms 20000) test 0
		? dereg 0
		close 0
		finalize 0
	END
	survive_connecting <<-END
		await $FAULTS/go
		post 0 0 0 4M
		pause 20
	END
	stands victim
	touch "$FAULTS/go"
	arrives closed
	signal victim CONT
	finish 0 "node a \($ADDRESS\).*did not answer"
}

# --- the cable ----------------------------------------------------------------------------------

# The bystander on a shares the cable, so it is lost as well: only c must not notice.
link_down() {
	begin "link down on the peer's side"
	victim_connects <<-END
		transfer 0 1M 5 3
		touch $FAULTS/go
		post 0 0 0 1M
		! within $(ms $LOST) test 0
		dereg 0
		within $(ms $LOST) close 0
		finalize 0
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
killed_after_listen
killed_while_connecting
stopped_while_connecting
killed_as_connector
killed_after_accept
killed_beside_a_child
killed_after_connect
sender_killed
receiver_killed
stopped_during_close
link_down mesh_carrier a ab down
