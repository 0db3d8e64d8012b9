#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_connect_fails.sh - more connections than a listener keeps for accept, and one that the kernel
# ends with an error of its own: the messages. The other ways in which connect() fails are in
# tests/world/test_world_connects.c. The connector is on node a, the listener on b.
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# finish CASE REGEX: both ended, and the connector said why it failed.
finish() {
	ended connector
	ended listener
	said connector WARN "$2"
	note "$1: $(grep -E "^WARN .*($2)" "$FAULTS/connector.log" | head -1)"
}

queue_full() {
	local i FAULTS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=30)

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
	finish "queue full" "refused a connection: it is out of memory or connections"
}

# An error of the control connection that is not the peer's end.
unreachable() {
	local port

	rm -f "$FAULTS"/{handle,handle.met,"done"}
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
	port=$(handle_port "$FAULTS/handle")
	# The listener's end times out, too, and must not say so.
	on b nft "add table inet block
		add chain inet block output { type filter hook output priority 0; }
		add rule inet block output tcp sport $port drop
		add chain inet block input { type filter hook input priority 0; }
		add rule inet block input tcp dport $port reject with icmp type net-unreachable" ||
		fail "nft does not take the rules"
	touch "$FAULTS/closed"
	finish "unreachable" "lost node b \(10.77.1.2\).* Network is unreachable"
}

faults_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
on b nft list ruleset >/dev/null 2>&1 || skip "nft does not work here (Debian, Ubuntu: nftables)"
queue_full
unreachable
