#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_two_cables.sh - two cables between two nodes: both are used; one that cannot be used is left
# out.
# seconds: 20
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

RUN_ARGS=(--timeout 60 --check-max 8K --check-every 2 --sizes "8,256K" --iters 20 --repeat 1)
# 2 pairs x 20 messages x 256 KiB are 10 MiB; each cable carries about half of it.
HALF=$((3 << 20))
# A cable whose packets the kernel of a busy machine leaves lying gets less: then once more.
TRIES=6
SILENT=$((256 << 10))

# Notes what NICs of a have sent; sent_since says how much more it is now.
declare -A BEFORE
remember() {
	local nic

	for nic in "$@"; do BEFORE[$nic]=$(bytes_sent a "$nic"); done
}
sent_since() { echo $(($(bytes_sent a "$1") - BEFORE[$1])); }

# silent RUN NIC: the NIC has sent almost nothing.
silent() {
	local bytes

	bytes=$(sent_since "$2")
	((bytes <= SILENT)) || fail "run $1: a's $2 has sent $bytes bytes"
}

good_paths() {
	expect_cable "$1" 0 1 "good:10.77.1.1" "good:10.77.1.2"
}

# halves: x1 and x2 have each sent their half; says in SHARES what they have.
halves() {
	SHARES=("$(sent_since x1)" "$(sent_since x2)")
	((SHARES[0] >= HALF && SHARES[1] >= HALF))
}

# both_used RUN [ENV...]: a run with these settings sends over both cables.
both_used() {
	local run=$1 try channels=1

	shift
	(($# == 0)) || channels=2
	RANKS_ENV=("$@")
	for ((try = 0; try < TRIES; try++)); do
		remember x1 x2 mgmt0
		ranks_pass "$run" a b -- "${RUN_ARGS[@]}" --iters $((40 / channels)) \
			--channels $channels
		silent "$run" mgmt0
		halves && break
		note "run $run: x1 and x2 of a have sent ${SHARES[*]} bytes; once more"
	done
	RANKS_ENV=()
	((try < TRIES)) || fail "run $run: x1 and x2 of a have sent ${SHARES[*]} bytes only"
	expect_paths "$run" 0 1 "x1:10.77.1.1>10.77.1.2" "x2:10.77.2.1>10.77.2.2"
	expect_paths "$run" 1 0 "x1:10.77.1.2>10.77.1.1" "x2:10.77.2.2>10.77.2.1"
}

test_both_used() {
	mesh_link a x1 10.77.1.1/24 b x1 10.77.1.2/24
	mesh_link a x2 10.77.2.1/24 b x2 10.77.2.2/24
	both_used one-channel
	both_used one-cable-each NCCL_MESH_DEBUG_MAX_PATHS=1
	uncable a x1
	uncable a x2
	note "two cables: one channel uses both; with one cable each, two channels do"
}

# Linux may send over either NIC here, whatever address is asked for: only the bytes count.
test_one_switch() {
	local dev

	mesh_switch sw a s0 10.77.20.1/24 a s1 10.77.20.3/24 b s0 10.77.20.2/24 b s1 10.77.20.4/24
	remember mgmt0
	for dev in 0 1; do
		ranks_pass switch-dev$dev a b -- "${RUN_ARGS[@]}" --dev $dev
		expect_cable switch-dev$dev 0 1 "*:*" "*:*"
	done
	silent switch mgmt0
	uncable a s0
	uncable a s1
	uncable b s0
	uncable b s1
	note "two NICs of each node on one switch: right, off the management network"
}

# good_used RUN WORDS: with a second NIC "bad" that cannot be used, every dev takes the other, and
# the log has the words.
good_used() {
	local run=$1 dev

	remember good bad mgmt0
	for dev in 0 1; do
		RANKS_ENV=(NCCL_DEBUG=INFO)
		ranks_pass "$run-dev$dev" a b -- "${RUN_ARGS[@]}" --dev $dev --verbose
		RANKS_ENV=()
		said "$run-dev$dev" "$2"
		good_paths "$run-dev$dev"
	done
	(($(sent_since good) >= 2 * HALF)) || fail "run $run: a's good NIC sent too little"
	silent "$run" bad
	silent "$run" mgmt0
	uncable a bad
	note "$run: the good cable is used; the log says: $2"
}

# Without this a NIC that is up has a link-local address.
no_ipv6() {
	ip netns exec "$MESH_PREFIX$1" sh -c "echo 1 >/proc/sys/net/ipv6/conf/$2/disable_ipv6"
}

test_peer_without_address() {
	mesh_link a bad 10.77.2.1/24 b bad -
	no_ipv6 b bad
	good_used peer-without-address 'NIC bad skipped: no address'
}

# The peer's end is in a third node: a's NIC looks as good as the other.
test_peer_elsewhere() {
	mesh_link a bad 10.77.2.1/24 c bad 10.77.2.2/24
	good_used peer-elsewhere 'NIC bad taken'
}

# Both addresses are there and match, but the cables lead nowhere: only trying shows it.
test_dead_cable() {
	mesh_link a bad 10.77.2.1/24 c dead1 -
	mesh_link b bad 10.77.2.2/24 c dead2 -
	good_used dead-cable 'NIC bad taken'
	uncable b bad
}

mesh_init
mesh_node a b c
test_both_used
test_one_switch
mesh_link a good 10.77.1.1/24 b good 10.77.1.2/24
for t in peer_without_address peer_elsewhere dead_cable; do
	"test_$t"
done
expect_check
