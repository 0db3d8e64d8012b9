#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_accept_doubt.sh - the link goes away while a connection is made. Its answer is on the way:
# the connector never had this connection, and makes another when the link is back; accept() waits
# for that one. Or the answer has come, and only NCCL is late with connect(), or with accept(): the
# connection goes on. Every byte arrives.
# seconds: 50
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# unacknowledged: the kernel of b still holds something for a.
unacknowledged() {
	on b ss -tnH state established dst 10.77.1.1 | grep -Eq '^ *[0-9]+ +[1-9]'
}

# has_lost NAME NODE
has_lost() { grep -qs "the connection with node $2 .*carrier\|lost node $2" "$FAULTS/$1.log"; }

command -v ss >/dev/null || skip "'ss' is missing (Debian, Ubuntu: iproute2)"
command -v nft >/dev/null || skip "'nft' is missing (Debian, Ubuntu: nftables)"
faults_init
FAULTS_ENV+=("NCCL_MESH_RECOVERY_TIMEOUT=60" "NCCL_MESH_CONNECT_TIMEOUT=60"
	"NCCL_MESH_ACCEPT_TIMEOUT=60")
mesh_up line 2
# Comm 1 is there before, so that comm 0 is one question and one answer.
play b listener <<-END
	limit 120000
	accepts 1 $FAULTS/handle.first
	listen 0 $FAULTS/handle
	await $FAULTS/away
	accept 0 0
	touch $FAULTS/accepted
	room 0 64K poison
	transfer 0 60000 8 3
	close 0
	close 1
END
play a connector <<-END
	limit 120000
	connects 1 $FAULTS/handle.first
	await $FAULTS/handle
	touch $FAULTS/first
	await $FAULTS/slow
	connect 0 $FAULTS/handle
	room 0 64K
	transfer 0 60000 8 3
	close 0
	close 1
END
arrives first
wait_for "! unacknowledged" 60 || fail "the nodes do not come to rest"
# Acknowledgements pass, and nothing larger.
on a nft add table inet drops && on a nft add chain inet drops in \
	'{ type filter hook input priority 0; }' &&
	on a nft add rule inet drops in iifname ab meta length gt 60 drop ||
	fail "cannot drop what b sends"
touch "$FAULTS/slow"
wait_for unacknowledged 60 || faults_show "the listener does not answer"
# The connections end before it is sent.
ip -n "$(mesh_ns b)" link set dev ba down
wait_for "has_lost listener a && has_lost connector b" 60 || faults_show "nobody notices the link"
touch "$FAULTS/away"
# Without the mend accept returns at once.
wait_for "[[ -e $FAULTS/accepted ]]" 2 && faults_show "accept returns what its connector never had"
on a nft delete table inet drops
ip -n "$(mesh_ns b)" link set dev ba up
ended connector
ended listener
unsaid listener WARN 'failed here, too'
note "a link that went away with the answer: every byte arrives over the next connection"

# The listener's NCCL has it, and the connector's asks for it later.
rm -f "$FAULTS"/handle* "$FAULTS/away" "$FAULTS/accepted"
play b listener <<-END
	limit 120000
	accepts 0 $FAULTS/handle
	close-listen 0
	touch $FAULTS/accepted
	room 0 64K poison
	transfer 0 60000 8 3
	close 0
END
play a connector <<-END
	limit 120000
	await $FAULTS/handle
	connect-calls 0 $FAULTS/handle 1
	await $FAULTS/away
	connect 0 $FAULTS/handle.begun
	room 0 64K
	transfer 0 60000 8 3
	close 0
END
arrives accepted handle.begun
ip -n "$(mesh_ns b)" link set dev ba down
wait_for "has_lost listener a && has_lost connector b" 60 || faults_show "nobody notices the link"
ip -n "$(mesh_ns b)" link set dev ba up
touch "$FAULTS/away"
ended connector
ended listener
note "a link that went away before connect returned: the connection goes on"

# The connector has it, and its link stays away for longer than a process that ends is waited for.
rm -f "$FAULTS"/handle* "$FAULTS/away" "$FAULTS/accepted"
play b listener <<-END
	limit 120000
	listen 0 $FAULTS/handle
	await $FAULTS/away
	accept 0 0
	touch $FAULTS/accepted
	room 0 64K poison
	transfer 0 60000 8 3
	close 0
END
play a connector <<-END
	limit 120000
	connects 0 $FAULTS/handle
	touch $FAULTS/connected
	await $FAULTS/away
	room 0 64K
	transfer 0 60000 8 3
	close 0
END
arrives connected
ip -n "$(mesh_ns b)" link set dev ba down
wait_for "has_lost listener a && has_lost connector b" 60 || faults_show "nobody notices the link"
touch "$FAULTS/away"
wait_for "[[ -e $FAULTS/accepted ]] || ! kill -0 ${FAULTS_PID[listener]}" 7 &&
	faults_show "accept does not wait for the link"
ip -n "$(mesh_ns b)" link set dev ba up
ended connector
ended listener
note "a link that stayed away while accept waited: the connection goes on"
