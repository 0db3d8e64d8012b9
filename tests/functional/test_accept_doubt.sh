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

# both LISTENER CONNECTOR [LAST]: the processes, which do this before they move messages over comm
# 0, and LAST.
both() {
	rm -f "$FAULTS"/{handle*,away,accepted}
	play b listener <<-END
		limit 120000
		$1
		room 0 64K poison
		transfer 0 60000 8 3
		close 0
		${3:-}
	END
	play a connector <<-END
		limit 120000
		$2
		room 0 64K
		transfer 0 60000 8 3
		close 0
		${3:-}
	END
}

link_goes() {
	ip -n "$(mesh_ns b)" link set dev ba down
	wait_for "has_lost listener a && has_lost connector b" 60 ||
		faults_show "nobody notices the link"
}

# link_returns WHAT
link_returns() {
	ip -n "$(mesh_ns b)" link set dev ba up
	touch "$FAULTS/away"
	ended connector
	ended listener
	note "$1"
}

command -v ss >/dev/null || skip "'ss' is missing (Debian, Ubuntu: iproute2)"
command -v nft >/dev/null || skip "'nft' is missing (Debian, Ubuntu: nftables)"
faults_init
FAULTS_ENV+=("NCCL_MESH_RECOVERY_TIMEOUT=60" "NCCL_MESH_CONNECT_TIMEOUT=60"
	"NCCL_MESH_ACCEPT_TIMEOUT=60")
mesh_up line 2
# Comm 1 is there before, so that comm 0 is one question and one answer.
both "accepts 1 $FAULTS/handle.first
	listen 0 $FAULTS/handle
	await $FAULTS/away
	accept 0 0
	touch $FAULTS/accepted" "connects 1 $FAULTS/handle.first
	await $FAULTS/handle
	touch $FAULTS/first
	await $FAULTS/slow
	connect 0 $FAULTS/handle" "close 1"
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
link_goes
touch "$FAULTS/away"
# Without the mend accept returns at once.
wait_for "[[ -e $FAULTS/accepted ]]" 2 && faults_show "accept returns what its connector never had"
on a nft delete table inet drops
link_returns "a link that went away with the answer: every byte arrives over the next connection"
unsaid listener WARN 'failed here, too'

# The listener's NCCL has it, and the connector's asks for it later.
both "accepts 0 $FAULTS/handle
	close-listen 0
	touch $FAULTS/accepted" "await $FAULTS/handle
	connect-calls 0 $FAULTS/handle 1
	await $FAULTS/away
	connect 0 $FAULTS/handle.begun"
arrives accepted handle.begun
link_goes
link_returns "a link that went away before connect returned: the connection goes on"

# The connector has it, and its link stays away for longer than a process that ends is waited for.
both "listen 0 $FAULTS/handle
	await $FAULTS/away
	accept 0 0
	touch $FAULTS/accepted" "connects 0 $FAULTS/handle
	touch $FAULTS/connected
	await $FAULTS/away"
arrives connected
link_goes
touch "$FAULTS/away"
wait_for "[[ -e $FAULTS/accepted ]] || ! kill -0 ${FAULTS_PID[listener]}" 7 &&
	faults_show "accept does not wait for the link"
link_returns "a link that stayed away while accept waited: the connection goes on"
