#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_up.sh - `fi_mesh up` and `down` on three nodes with an sshd each: one with netplan, one with
# NetworkManager, one with systemd-networkd.
#
# A wrong cabling: each fault is named, and nothing changes. The right one, with crossed cables:
# one command leads from nothing to a table in which every pair is ok; `down` restores every file
# byte for byte. A node that lies is refused, and so is one that cannot be read; a rollback that
# leaves something is told. The management network of a node is pulled in mid-apply: all nodes roll
# back. With a cable less, the node in the middle relays.
# seconds: 240
. "$(dirname "${BASH_SOURCE[0]}")/up_nodes.sh"

NODES=(a b c)
declare -A TOOL=([a]=netplan [b]=nm [c]=networkd) ETC NICS

# The files that are there before: `down` has to restore these bytes.
files_make() {
	printf '# mine, without a newline at the end\nnetwork: {version: 2}' \
		>"$(node_etc a)/netplan/60-mesh-p0.yaml"
	mkdir -p "$(node_etc c)/systemd/network"
	printf '[Match]\r\nName=p0\r\n\r\n[Network]\r\nDHCP=no\r\n' \
		>"$(node_etc c)/systemd/network/60-mesh-p0.network"
	# Of another guide: netplan would merge it with ours.
	printf 'network:\n  ethernets:\n    p0: {addresses: [10.0.0.1/24], dhcp4: false}\n' \
		>"$(node_etc a)/netplan/40-cx7.yaml"
	touch -d 2001-02-03 "$(node_etc a)/netplan/60-mesh-p0.yaml"
	chmod 640 "$(node_etc a)/netplan/60-mesh-p0.yaml"
}

remember() {
	local node

	for node in "${NODES[@]}"; do
		ETC[$node]=$(etc_sum "$node")
		NICS[$node]=$(nics_sum "$node")
	done
}

# as_before WHAT [NODE...]: files and NICs of these, or all, nodes are as remember() found them.
as_before() {
	local what=$1 node

	shift
	(($#)) || set -- "${NODES[@]}"
	for node in "$@"; do
		[[ $(etc_sum "$node") == "${ETC[$node]}" ]] || {
			find "$(node_etc "$node")" -newer "$KEYS/config" -type f
			fail "$what: files of $node changed"
		}
		diff <(echo "${NICS[$node]}") <(nics_sum "$node") ||
			fail "$what: NICs of $node changed"
	done
}

# A node that is none of the hosts; it says who it is.
faults_cable() {
	mesh_node x
	mesh_pair a p0 b p1
	mesh_pair a p1 b p0
	mesh_pair c p0 x p0
	ip -n "${MESH_PREFIX}b" link set p0 mtu 1400
	# The port alone, switched off.
	ip -n "${MESH_PREFIX}c" link add p1 type veth peer name q1 netns "${MESH_PREFIX}x"
	mesh_spawn x "$OUT/x.serve" "$MESH_BUILD/fi_mesh" serve
	wait_for "grep -q '^answering neighbours' $OUT/x.serve" 60 ||
		{ cat "$OUT/x.serve"; fail "x does not serve"; }
}

faults_named() {
	mesh_command dry 1 up --dry-run "${NODES[@]}"
	has dry "a:p1 - b:p0: the ends have different MTUs, 1500 and 1400" \
		"a and b have 2 cables (a:p0 - b:p1; a:p1 - b:p0)" \
		"one of these cables joins the wrong nodes" \
		"no cable joins a and c" "no cable joins b and c" \
		"c:p0 is cabled to none of these nodes: node x (p0) answers there" \
		"c:p1 is switched off" "on c: ip link set dev p1 up"
	mesh_command refused 1 up --yes "${NODES[@]}"
	has refused "c:p1 has no link" "nothing was changed: repair the cables"
	as_before "a refused up"
	note "a wrong cable, a cable to another node, an MTU and a port that is down are named"
}

# The cables as they should be, but crossed.
faults_mend() {
	uncable a p0
	uncable a p1
	uncable c p0
	uncable c p1
	mesh_pair a p0 c p1
	mesh_pair a p1 b p0
	mesh_pair b p1 c p0
	ip -n "${MESH_PREFIX}b" link set p0 mtu 1400
	# A part of the mesh that is right, and an address that is not.
	mesh_addresses a p1 192.168.100.17/24
	mesh_addresses b p0 192.168.100.18/24
	mesh_addresses c p0 10.99.0.1/24
	files_make
}

# A node that reports a command of a shell where the address is that the other nodes connect to.
lie_refused() {
	# shellcheck disable=SC2016 # the lie is for the nodes' shells
	printf '#!/bin/sh\nSSH_CONNECTION="${SSH_CONNECTION%% * *} %s 22"\nexec /bin/sh "$@"\n' \
		"10.250.0.1;touch\\\${IFS}$OUT/touched;" >"$OUT/a/bin/sh"
	chmod 755 "$OUT/a/bin/sh"
	mesh_command lie 1 up --yes "${NODES[@]}"
	[[ ! -e $OUT/touched ]] ||
		{ cat "$OUT/lie.out"; fail "a has run a command on other nodes"; }
	has lie "a: \$SSH_CONNECTION: \"10.250.0.1;touch\${IFS}$OUT" "is not an IP address"
	as_before "a node that lies"
	rm "$OUT/a/bin/sh"
	note "a node that lies runs no command on others, and is named"
}

up_works() {
	mesh_command up 0 up --yes "${NODES[@]}"
	has up "3 cables between 3 nodes" "the ends have different MTUs, 1500 and 1400" \
		"a:p1  192.168.100.17/24  b:p0  192.168.100.18/24  kept" \
		"a, with netplan:" "b, with NetworkManager:" "c, with systemd-networkd:" \
		"+++ b:/etc/NetworkManager/system-connections/mesh-p1.nmconnection" \
		"-# mine, without a newline at the end" \
		"/etc/netplan/40-cx7.yaml is about these NICs only: it goes" \
		"Applied on a, b, c." "torchrun --nnodes 3" "NCCL itself was not run"
	[[ $(grep -cE '^[0-2] \([abc]\) .* ok$' "$OUT/up.out") == 6 ]] ||
		{ cat "$OUT/up.out"; fail "the table has not six pairs that are ok"; }
	[[ ! -e $(node_etc a)/netplan/40-cx7.yaml ]] || fail "the other guide's file is there"
	[[ $(nics_sum a | grep -c '^p. 9000') == 2 ]] || fail "a has another MTU"
	mesh_command again 0 up --dry-run "${NODES[@]}"
	has again "a: nothing to change" "b: nothing to change" "c: nothing to change"
	mesh_command check 1 check --all "${NODES[@]}" --json
	python3 - "$OUT/check.out" <<-'END' || { cat "$OUT/check.out"; fail "check --all --json"; }
		import json, sys
		found = json.load(open(sys.argv[1]))
		assert not found["faults"] and len(found["cables"]) == 3, found["faults"]
		assert sorted(found["checks"]) == ["a", "b", "c"]
		assert sum(len(peer["sections"]) for report in found["links"].values()
		           for peer in report["peers"]) >= 3
	END
	note "one command leads to a mesh in which every pair is ok"
}

down_works() {
	local made_again

	made_again=$(node_etc a)/netplan/40-cx7.yaml
	echo "# made again" >"$made_again"
	mesh_command down 0 down --yes "${NODES[@]}"
	[[ $(cat "$made_again") == "# made again" ]] || fail "a file that was made again is lost"
	mv "$made_again.before-mesh" "$made_again" || fail "the file that it replaces is lost"
	as_before down
	[[ ! -e $(node_lib a)/nccl-net-mesh ]] || fail "down leaves its own files"
	mesh_command down_again 0 down --yes "${NODES[@]}"
	has down_again "a: nothing to undo"
	note "down restores every file and every NIC"
}

pulled_rolls_back() {
	local pid

	touch "$OUT/a/hold"
	on mgmt timeout 300 "$MESH_BUILD/fi_mesh" up --yes "${NODES[@]}" --rollback-after 6 \
		--connect-timeout 3 --ssh "ssh -F $KEYS/config" --bin "$BIN" \
		>"$OUT/pulled.out" 2>&1 </dev/null &
	pid=$!
	wait_for "[[ -e $OUT/a/applying ]]" 60 ||
		{ cat "$OUT/pulled.out"; fail "a applies nothing"; }
	mesh_carrier a mgmt0 down
	touch "$OUT/a/pulled"
	wait_for "grep -qs 'reverted' $(node_lib a)/nccl-net-mesh/up/result" 60 ||
		fail "a does not take the change back by itself"
	as_before "the pulled network" a
	wait_for "grep -q 'waiting for it' $OUT/pulled.out" 120 || fail "up waits for a longer"
	mesh_carrier a mgmt0 up
	wait "$pid" && { cat "$OUT/pulled.out"; fail "up succeeds without a"; }
	has pulled "a: not reachable after the change" "the change was reverted on all nodes" \
		"a answers again: reverted: not confirmed within 6 s"
	as_before "the pulled network, b and c"
	rm -f "$OUT/a/"{hold,applying,pulled}
	note "a node that is cut off in mid-apply takes its change back, and so do the others"
}

# stuck_apply IP: a's own change to p0 and to a NIC that it does not have, with a stand-in for ip.
stuck_apply() {
	local next=$OUT/stuck/next

	rm -rf "$OUT/stuck"
	mkdir -p "$next/tree" "$OUT/stuck/bin"
	cp "$MESH_TOP/fi_utils/cluster/program/node.sh" "$OUT/stuck"
	touch "$next/write" "$next/remove" "$next/was_down"
	echo ip >"$next/tool"
	echo p0 >"$next/ports"
	printf 'p0 9000 10.98.0.1/24\nnone 9000 10.98.1.1/24\n' >"$next/want"
	printf '#!/bin/sh\n%s\nexec %s "$@"\n' "$1" "$(command -v ip)" >"$OUT/stuck/bin/ip"
	chmod 755 "$OUT/stuck/bin/ip"
	on a env "FI_MESH_STATE=$OUT/stuck" "PATH=$OUT/stuck/bin:$PATH" \
		sh "$OUT/stuck/node.sh" apply one 5 >"$OUT/stuck.out" 2>&1 &&
		{ cat "$OUT/stuck.out"; fail "a node applies what it cannot"; }
}

rollback_checked() {
	# shellcheck disable=SC2016 # the stand-in's own arguments
	stuck_apply '[ "$1 $2" != "address del" ] || exit 0'
	has stuck "reverted: ip refuses the configuration" \
		"; but p0 is not as before: it had MTU, state and addresses 1500 up"
	on a ip address del 10.98.0.1/24 dev p0 || fail "the address is not there"
	# shellcheck disable=SC2016
	stuck_apply '[ "$2" != address ] || exit 1'
	has stuck "cannot read what p0 has"
	as_before "a change that cannot be taken back" a
	note "a rollback is checked, and a node that cannot be read is not changed"
}

# The machine stops in the middle of a change, with its guard: the next command takes it back.
guard_ends() {
	local guard state

	state=$(node_lib a)/nccl-net-mesh/up
	touch "$OUT/a/hold"
	# Its own process, not a shell's around it: it must have ended before the next command.
	mesh_spawn mgmt "$OUT/guard.out" timeout 300 "$MESH_BUILD/fi_mesh" up --yes "${NODES[@]}" \
		--rollback-after 20 --ssh "ssh -F $KEYS/config" --bin "$BIN"
	wait_for "[[ -e $OUT/a/applying ]]" 150 ||
		{ cat "$OUT/guard.out"; fail "a applies nothing"; }
	for node in b c; do
		wait_for "[[ -e $(node_lib $node)/nccl-net-mesh/up/pending ]]" 60 ||
			{ cat "$OUT/guard.out"; fail "$node applies nothing"; }
	done
	guard=$(sed -n 2p "$state/pending")
	kill -KILL -- "-$guard" || fail "the guard of a, $guard, does not run"
	kill "$MESH_SPAWNED"
	wait "$MESH_SPAWNED"
	# The other nodes take it back by themselves; on a the guard is gone.
	for node in b c; do
		wait_for "! [[ -e $(node_lib $node)/nccl-net-mesh/up/pending ]]" 120 ||
			fail "$node does not take the change back"
	done
	rm -f "$OUT/a/"{hold,applying}
	mesh_command after_guard 0 down --yes "${NODES[@]}"
	has after_guard "a: an unfinished change is reverted"
	as_before "a guard that ended"
	note "a change whose guard ended is taken back by the next command"
}

# Without the cable between b and c: a relays for the two.
up_relays() {
	uncable c p0
	mesh_command line 0 up --yes "${NODES[@]}"
	has line "2 cables between 3 nodes" " via a "
	[[ $(grep -cE '^[0-2] \([abc]\) .* ok$' "$OUT/line.out") == 6 ]] ||
		{ cat "$OUT/line.out"; fail "the table has not six pairs that are ok"; }
	note "nodes without a cable of their own are driven through the node between them"
}

[[ -x $SSHD ]] || skip "sshd is missing (Debian, Ubuntu: openssh-server)"
command -v netplan >/dev/null || skip "netplan is missing (Debian, Ubuntu: netplan.io)"
mesh_init
mesh_node "${NODES[@]}"
keys_make
for node in "${NODES[@]}"; do node_sshd "$node" "${TOOL[$node]}"; done
faults_cable
remember
faults_named
faults_mend
remember
lie_refused
rollback_checked
up_works
down_works
pulled_rolls_back
guard_ends
up_relays
