#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_booted.sh - `fi_mesh up` typed on one of three machines that boot Debian with the real
# netplan, NetworkManager and systemd-networkd, as their installers leave them: each machine's own
# name is 127.0.1.1 in its /etc/hosts, a file of an earlier guide gives the same NICs other
# addresses, and NetworkManager has given up its automatic connections, whose ports have no address
# at all. The mesh is there after a reboot with other links, and `down` restores every byte.
# seconds: 80
# alone: it boots three machines
# long: three machines boot; test_up has stand-ins for their services
. "$(dirname "${BASH_SOURCE[0]}")/machines.sh"

NODES=(a b c)

cables() {
	mesh_pair a p0 c p1
	mesh_pair a p1 b p0
	mesh_pair b p1 c p0
}

login() { on mgmt ssh -F "$KEYS/config" "$@"; }

# typed NAME STATUS ARGUMENT...: fi_mesh on a, as its user; the output goes to $OUT/NAME.out.
typed() {
	local name=$1 want=$2 status

	shift 2
	login a "timeout 400 $MESH_BUILD/fi_mesh $* --bin $BIN" >"$OUT/$name.out" 2>&1 </dev/null
	status=$?
	((status == want)) || { cat "$OUT/$name.out"; fail "$name: status $status, not $want"; }
}

boot_all() {
	local node

	for node in "${NODES[@]}"; do machine_boot "$node"; done
	for node in "${NODES[@]}"; do machine_booted "$node"; done
}

# etc NODE: each file of its /etc with mode and sum.
etc() {
	login "$1" 'cd /etc && find . -type f -printf "%m " -exec sha256sum {} + | sort -k 3' |
		grep -vE ' \./(resolv.conf|.updated)$'
}

machines_init "${NODES[@]}"
machine_make a netplan
machine_make b nm
machine_make c networkd
mkdir -p "$MACHINES/a/root/etc/netplan"
cat >"$MACHINES/a/root/etc/netplan/40-cx7.yaml" <<-END
	network:
	  version: 2
	  ethernets:
	    p0: {addresses: [10.0.0.1/24], dhcp4: false}
	    p1: {addresses: [10.0.1.1/24], dhcp4: false}
END
chmod 600 "$MACHINES/a/root/etc/netplan/40-cx7.yaml"
cables
boot_all
login b 'nmcli device disconnect p0 && nmcli device disconnect p1' >"$OUT/nm" 2>&1 ||
	{ cat "$OUT/nm"; fail "NetworkManager does not leave the ports"; }
for node in "${NODES[@]}"; do etc "$node" >"$OUT/etc-$node"; done
typed foreign 1 up --yes "${NODES[@]}"
grep -q '/etc/netplan/40-cx7.yaml names these NICs, too' "$OUT/foreign.out" &&
	grep -q 'a: taken back: p0 has other addresses, too' "$OUT/foreign.out" ||
	{ cat "$OUT/foreign.out"; fail "the other guide's file is not named"; }
login a 'rm /etc/netplan/40-cx7.yaml && netplan apply' || fail "netplan apply on a"
for node in "${NODES[@]}"; do etc "$node" >"$OUT/etc-$node"; done
typed up 0 up --yes "${NODES[@]}"
[[ $(grep -cE '^[0-2] \([abc]\) .* ok$' "$OUT/up.out") == 6 ]] ||
	{ cat "$OUT/up.out"; fail "the table has not six pairs that are ok"; }
typed again 0 up --dry-run "${NODES[@]}"
[[ $(grep -c 'nothing to change' "$OUT/again.out") == 3 ]] ||
	{ cat "$OUT/again.out"; fail "a second up has something to change"; }
note "one command, typed on a, leads to a mesh in which every pair is ok"

for node in "${NODES[@]}"; do machine_halt "$node"; done
uncable a p0
uncable a p1
uncable b p1
cables
boot_all
typed rebooted 0 up --dry-run "${NODES[@]}"
[[ $(grep -c 'nothing to change' "$OUT/rebooted.out") == 3 ]] ||
	{ cat "$OUT/rebooted.out"; fail "the mesh is another one after a reboot"; }
note "it is there after a reboot, with other links"
typed down 0 down --yes "${NODES[@]}"
for node in "${NODES[@]}"; do
	diff "$OUT/etc-$node" <(etc "$node") || fail "down leaves other files in /etc of $node"
done
note "down restores every byte of /etc"
