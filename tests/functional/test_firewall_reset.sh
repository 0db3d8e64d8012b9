#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_firewall_reset.sh - a firewall's reload rejects TCP on the only cable for a moment, with
# resets, while messages of all sizes stream over 16 connections in each direction: all of them wait
# and go on. Every byte is checked.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

command -v nft >/dev/null || skip "'nft' is missing (Debian, Ubuntu: nftables)"

# reject NODE RULE: until reject_end. What the rule names is answered with a reset.
reject() {
	on "$1" nft "add table inet reload
		add chain inet reload in { type filter hook input priority 0; }
		add rule inet reload in iifname x1 $2 counter reject with tcp reset" ||
		fail "nft does not take the rule"
}

# reject_end NODE: the rule has rejected something.
reject_end() {
	local counted

	counted=$(on "$1" nft list ruleset)
	on "$1" nft delete table inet reload || fail "nft does not delete the table"
	grep -q 'counter packets [1-9]' <<<"$counted" || fail "nothing was rejected: $counted"
}

# reload KIND NODE. Whoever is refused for 2 s has ended, for the plugin (MESH_REFUSED_MS).
reload() {
	local began took

	began=$(now_ms)
	case $1 in
	all) # connections that are there are reset, and new ones are refused
		reject "$2" 'meta l4proto tcp'
		;;
	new) # all are reset at once, and new ones are refused
		reject "$2" 'tcp flags syn'
		on "$2" ss -K -t src "$(mesh_addr "$2" x1)" >/dev/null 2>&1
		;;
	esac
	pause 0.4
	reject_end "$2"
	took=$(($(now_ms) - began))
	((took < 2000)) || skip "nft needs so long here that the rule stands for $took ms"
}

cables_init 1 200mbit
STREAM_COMMS=16 STREAM_MOST=300000
stream reload 0
for round in 1 2; do
	for kind in all new; do
		for node in a b; do
			reload $kind $node
			moves 10000
			note "$round: $kind rejected at $node; something arrives after $MOVED_MS ms"
		done
	done
done
stream_stop
stream_ends
