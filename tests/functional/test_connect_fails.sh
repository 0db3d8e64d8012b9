#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_connect_fails.sh - connections that cannot be made: the messages, and what stays behind.
#
# The connector is on node a, the listener on b, whose firewall takes ports and gives them back.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Each is a function; arguments select some of them.
CASES=(queue_full fabric_port_dropped refused_then_stopped unreachable)

# Fresh files for the next case.
begin() {
	rm -f "$FAULTS"/{handle,go,blocked,closed,"done"}*
}

# finish REGEX: both ended, and the connector said why it failed.
finish() {
	ended connector
	ended listener
	said connector WARN "$1"
	note "$CASE: $(grep -E "^WARN .*($1)" "$FAULTS/connector.log" | head -1)"
}

# The control port of b, and the provider's port: the other one on which b listens there.
control_port() { handle_port "$FAULTS/handle"; }
fabric_port() {
	on b ss -Hltn src 10.77.1.2 | awk '{sub(".*:", "", $4); print $4}' |
		grep -vx "$(control_port)"
}

# block PORT [VERDICT...]: packets to this port of b are dropped, or get VERDICT.
block() {
	local port=$1

	shift
	on b nft "add table inet block
		add chain inet block input { type filter hook input priority 0; }
		add rule inet block input tcp dport $port counter ${*:-drop}" ||
		fail "nft does not take the rule"
}

unblock() { on b nft flush ruleset; }

# blocked: true once the firewall has met a packet.
blocked() { on b nft list ruleset | grep -q 'counter packets [1-9]'; }

# How often the plugin's thread of process NAME has gone to sleep.
engine_turns() {
	local task

	for task in "/proc/${FAULTS_PID[$1]}/task"/*; do
		[[ $(<"$task/comm") != nccl-net-mesh ]] ||
			awk '/^voluntary/ {print $2}' "$task/status"
	done
}

# rests NAME: the plugin's thread of process NAME does nothing for a second.
rests() {
	local before

	before=$(engine_turns "$1")
	pause 1
	[[ $before && $before == "$(engine_turns "$1")" ]]
}

# --- more connections than a listener keeps for accept -------------------------------------------

queue_full() {
	local i FAULTS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=30)

	begin
	play b listener <<-END
		listen 0 $FAULTS/handle
		await $FAULTS/done
	END
	play a connector <<-END
		await $FAULTS/handle
		$(for i in {0..63}; do echo "connect $i $FAULTS/handle"; done)
		! within $(ms 10000) connect 64 $FAULTS/handle
		touch $FAULTS/done
		$(for i in {0..63}; do echo "close $i"; done)
	END
	finish "refused a connection: it is out of memory or connections"
}

# --- the control connection is made, and the provider's is blocked -------------------------------

fabric_port_dropped() {
	local attempts port

	begin
	# After the port is opened again, many seconds may pass before the kernel's next SYN for the
	# provider's earlier attempts, because each of its waits is longer than the last.
	local FAULTS_ENV=(
		"NCCL_MESH_CONNECT_TIMEOUT=8" "NCCL_MESH_ACCEPT_TIMEOUT=90"
		"NCCL_MESH_DEAD_PEER_TIMEOUT=3"
	)
	play b listener <<-END
		listen 0 $FAULTS/handle
		await $FAULTS/go
		$(receive_once)
	END
	play a connector <<-END
		await $FAULTS/blocked
		! within $(ms 13000) connect 1 $FAULTS/handle
		close 1
		touch $FAULTS/done
		await $FAULTS/go
		connect-again 0 $FAULTS/handle
		$(send_once)
	END
	arrives handle
	knock b 10.77.1.2 "$FAULTS/handle"
	wait_for "[[ \$(fabric_port) ]]" 60 || faults_show "no provider listens"
	port=$(fabric_port)
	block "$port"
	touch "$FAULTS/blocked"
	arrives "done"
	# One attempt every three seconds: an error of an earlier attempt ends none.
	attempts=$(grep -c '^INFO .*the connection with node a .* ended' "$FAULTS/listener.log")
	((attempts <= 3)) || faults_show "$attempts attempts in 8 s"
	wait_for "rests connector" 60 || faults_show "the connector's engine does not rest"
	wait_for "rests listener" 60 || faults_show "the listener's engine does not rest"
	unblock
	touch "$FAULTS/go"
	finish "gave up connecting.* does not answer on port $port: does a firewall drop"
}

# --- refused at first, stopped then: only the last reason counts ---------------------------------

refused_then_stopped() {
	begin
	play b listener <<-END
		listen 0 $FAULTS/handle
		stop
	END
	arrives handle
	stands listener
	block "$(control_port)" reject with tcp reset
	play a connector <<-END
		! within $(ms 12000) connect 0 $FAULTS/handle
		close 0
	END
	wait_for blocked 60 || fail "the firewall met nothing"
	unblock
	ended connector
	signal listener CONT
	finish "gave up connecting.* it does not answer our request"
}

# --- an error of the control connection that is not the peer's end -------------------------------

unreachable() {
	begin
	play b listener <<-END
		$(meet listen 1M)
		touch $FAULTS/go
		await $FAULTS/done
		? dereg 0
		? close 0
	END
	play a connector <<-END
		$(meet connect 1M)
		post 0 0 0 1M
		touch $FAULTS/blocked
		await $FAULTS/closed
		connect-calls 1 $FAULTS/handle 1 # sends a frame: probes do not count
		! within $(ms 20000) test 0
		? dereg 0
		? close 0
		touch $FAULTS/done
	END
	arrives go blocked
	# The listener's end times out, too, and must not say so.
	on b nft "add table inet block
		add chain inet block output { type filter hook output priority 0; }
		add rule inet block output tcp sport $(control_port) drop" ||
		fail "nft does not take the rule"
	block "$(control_port)" reject with icmp type net-unreachable
	touch "$FAULTS/closed"
	finish "lost node b \(10.77.1.2\).* Network is unreachable"
	unblock
}

receive_once() {
	cat <<-END
		accept 0 0
		room 0 1M
		transfer 0 64K 8 1
		drop 0
		close-listen 0
		within $(ms 3000) finalize 0
	END
}

# The comm is there already.
send_once() {
	cat <<-END
		room 0 1M
		transfer 0 64K 8 1
		drop 0
		within $(ms 3000) finalize 0
	END
}

faults_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
on b nft list ruleset >/dev/null 2>&1 || skip "nft does not work here (Debian, Ubuntu: nftables)"
for CASE in "${@:-${CASES[@]}}"; do
	"$CASE"
done
