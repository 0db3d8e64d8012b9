#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_booted.sh - `fi_mesh up` typed on one of three machines that boot Debian with the real
# netplan, NetworkManager and systemd-networkd, as their installers leave them: each machine's own
# name is 127.0.1.1 in its /etc/hosts, a file of an earlier guide gives the same NICs other
# addresses, and NetworkManager has given up its automatic connections, whose ports have no address
# at all. `down` restores every byte. In a long run also: the mesh is there after a reboot with
# other links, and all of it works over a management network that has only IPv6.
# seconds: 60
# alone: it boots three machines
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

# The management network's IPv4 addresses go, and the nodes know each other by IPv6 ones.
mgmt_ipv6() {
	local node to_ipv6='s/10\.77\.0\.\([0-9]\)/fd77::\1/'

	ip -n "${MESH_PREFIX}mgmt" address add fd77::254/64 dev br0 nodad
	for node in "${NODES[@]}"; do
		ip -n "$MESH_PREFIX$node" -4 address flush dev mgmt0
		ip -n "$MESH_PREFIX$node" address add \
			"$(mesh_mgmt_addr "$node" | sed "$to_ipv6")/64" dev mgmt0 nodad
		sed -i "$to_ipv6" "$MACHINES/$node/root/etc/hosts"
	done
	sed -i "$to_ipv6" "$KEYS/config"
}

# on_cables NODE: how many IPv4 addresses its cables have.
on_cables() { ip -n "$MESH_PREFIX$1" -o -4 address show | grep -c ' p[01] '; }

# The services have configured the cables; ssh may answer before that.
configured() {
	local node

	for node in "${NODES[@]}"; do
		wait_for "((\$(on_cables $node) == 2))" 120 ||
			fail "no addresses on the cables of $node after the boot"
	done
}

# restored: /etc of each machine is as it was.
restored() {
	local node

	for node in "${NODES[@]}"; do
		diff "$OUT/etc-$node" <(etc "$node") ||
			fail "down leaves other files in /etc of $node"
	done
}

# in_order NAME: the output's table has each pair in both directions.
in_order() {
	[[ $(grep -cE '^[0-2] \([abc]\) .* ok$' "$OUT/$1.out") == 6 ]] ||
		{ cat "$OUT/$1.out"; fail "the table of $1 has not six pairs that are ok"; }
}

# A file that says more than the addresses of cables stays, and the change is taken back.
foreign_named() {
	login a "sed -i 's/.*version: 2/&\n  renderer: networkd/' /etc/netplan/40-cx7.yaml"
	typed foreign 1 up --yes "${NODES[@]}"
	grep -q '/etc/netplan/40-cx7.yaml names these NICs, too' "$OUT/foreign.out" &&
		grep -q 'a: reverted: p0 also has other addresses' "$OUT/foreign.out" ||
		{ cat "$OUT/foreign.out"; fail "the other guide's file is not named"; }
	login a 'sed -i /renderer/d /etc/netplan/40-cx7.yaml' || fail "cannot edit a file of a"
}

rebooted() {
	local node

	for node in "${NODES[@]}"; do machine_halt "$node"; done
	uncable a p0
	uncable a p1
	uncable b p1
	cables
	boot_all
	configured
	typed rebooted 0 up --dry-run "${NODES[@]}"
	[[ $(grep -c 'nothing to change' "$OUT/rebooted.out") == 3 ]] ||
		{ cat "$OUT/rebooted.out"; fail "the mesh is another one after a reboot"; }
	note "it is there after a reboot, with other links"
}

machines_init "${NODES[@]}"
machine_make a netplan
machine_make b nm
machine_make c networkd
mkdir -p "$MACHINES/a/root/etc/netplan"
# As an installer leaves it. Without any file `fi_mesh up` would not use netplan.
printf 'network: {version: 2, renderer: networkd}\n' >"$MACHINES/a/root/etc/netplan/01-netcfg.yaml"
cat >"$MACHINES/a/root/etc/netplan/40-cx7.yaml" <<-END
	network:
	  version: 2
	  ethernets:
	    p0: {addresses: [10.0.0.1/24], dhcp4: false}
	    p1: {addresses: [10.0.1.1/24], dhcp4: false}
END
chmod 600 "$MACHINES/a/root/etc/netplan/"*
cables
boot_all
login b 'nmcli device disconnect p0 && nmcli device disconnect p1' >"$OUT/nm" 2>&1 ||
	{ cat "$OUT/nm"; fail "NetworkManager does not leave the ports"; }
[[ ! ${TEST_LONG:-} ]] || foreign_named
for node in "${NODES[@]}"; do etc "$node" >"$OUT/etc-$node"; done
typed up 0 up --yes "${NODES[@]}"
in_order up
grep -q '/etc/netplan/40-cx7.yaml is about these NICs only: it goes' "$OUT/up.out" ||
	{ cat "$OUT/up.out"; fail "the other guide's file stays"; }
typed again 0 up --dry-run "${NODES[@]}"
[[ $(grep -c 'nothing to change' "$OUT/again.out") == 3 ]] ||
	{ cat "$OUT/again.out"; fail "a second up has something to change"; }
note "one command, typed on a, leads to a mesh in which every pair is ok"

[[ ! ${TEST_LONG:-} ]] || rebooted
typed down 0 down --yes "${NODES[@]}"
restored
note "down restores every byte of /etc"

[[ ${TEST_LONG:-} ]] || exit 0
mgmt_ipv6
for node in "${NODES[@]}"; do etc "$node" >"$OUT/etc-$node"; done
typed up6 0 up --yes "${NODES[@]}"
in_order up6
grep -q -e '--master_addr fd77::1 ' "$OUT/up6.out" ||
	{ cat "$OUT/up6.out"; fail "the job's first address is not the IPv6 one of a"; }
typed down6 0 down --yes "${NODES[@]}"
restored
note "all of it over a management network that has only IPv6"
