#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_damaged_stream.sh - the bytes of the provider's TCP connection are damaged on the way, which
# libfabric's tcp cannot detect: it closes the connection, or loses messages, and reports neither.
# Every connection either delivers right bytes or fails, at both ends, in words and in time.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

COMMS=4
DEAD=3 # seconds; NCCL_MESH_DEAD_PEER_TIMEOUT
# An end asks after 3 s, again after 3 s if the link was busy, and then waits for DEAD. The rest is
# for a loaded machine.
BOUND=$((1000 * (3 + 3 + DEAD) + 8000))
FAULTS_ENV+=("NCCL_MESH_DEAD_PEER_TIMEOUT=$DEAD")

# What some end says if a connection fails.
WORDS="the provider has lost it, because its connection was reset, or"

# damage NODE BYTE VALUE: this byte of the payload of the next packet of the provider's connections
# that arrives at NODE gets VALUE. The header of libfabric's tcp is at the front of the payload.
damage() {
	local control

	control=$(od -An -tu2 -j28 -N2 "$FAULTS/handle" | tr -d ' ')
	on "$1" nft "add table inet damage
		add chain inet damage input { type filter hook input priority 0; }
		add rule inet damage input ip saddr 10.77.1.0/24 ip length > 60 \
			tcp dport != $control tcp sport != $control \
			limit rate 1/hour burst 1 packets \
			@th,$((8 * (32 + $2))),8 set $3 counter" ||
		fail "nft does not take the rule"
}

# each LINE: the line for each connection, with its number in place of @.
each() {
	local i

	for ((i = 0; i < COMMS; i++)); do
		echo "${1//@/$i}"
	done
}

# role_begin ROLE: makes the connections.
role_begin() {
	if [[ $1 == listen ]]; then
		echo "listen 0 $FAULTS/handle"
		each "accept @ 0"
	else
		echo "await $FAULTS/handle"
		each "connect @ $FAULTS/handle"
	fi
	each "buffer @ 4M"
	each "reg @ @ @"
}

# damaged CASE NODE BYTE VALUE: all connections transfer messages, and one packet is damaged.
damaged() {
	local role

	note "$1"
	rm -f "$FAULTS"/*
	for role in listen connect; do
		play "$([[ $role == listen ]] && echo b || echo a)" $role <<-END
			$(role_begin $role)
			touch $FAULTS/$role.ready
			await $FAULTS/damage
			$(each "thread @ ? within $(ms $BOUND) transfer @ 512K 3 @")
			$(each "join @")
			touch $FAULTS/$role.over
			await $FAULTS/listen.over
			await $FAULTS/connect.over
			$(each "dereg @"; each "close @")
		END
	done
	arrives listen.ready connect.ready
	damage "$2" "$3" "$4"
	touch "$FAULTS/damage"
	ended listen
	ended connect
	on "$2" nft list ruleset | grep -q 'counter packets 1 ' || faults_show "nothing was damaged"
	on "$2" nft flush ruleset
	cat "$FAULTS"/{listen,connect}.log >"$FAULTS/both.log"
	grep -q '^ok transfer: result [^0]' "$FAULTS/both.log" && said both WARN "$WORDS"
	note "$(grep -h '^ok transfer' "$FAULTS/both.log" | sort | uniq -c | tr '\n' ';')"
}

faults_init
mesh_up line 2
on b nft list ruleset >/dev/null 2>&1 || skip "nft does not work here (Debian, Ubuntu: nftables)"
damaged "the kind of an operation" b 1 0x55
damaged "the length of a write" b 12 0x7f
damaged "the length of a grant" a 12 0x7f
note "damaged streams end every connection that lost something, in words"
