#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_plan_networkd.sh - a real systemd-networkd, in a namespace, configures what is planned.
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

for NETWORKD in /usr/lib/systemd/systemd-networkd /lib/systemd/systemd-networkd; do
	[[ ! -x $NETWORKD ]] || break
done

# networkd NODE FOLDER: runs it on the files in FOLDER. With /sys read-only it waits for no udev;
# /run is its own, so that it meets no other networkd, no D-Bus and no files but ours.
# shellcheck disable=SC2016 # expanded by the inner shell
networkd() {
	mesh_spawn "$1" "$OUT/networkd.log" unshare -m --propagation private sh -c '
		mount -t tmpfs tmpfs /run && mount -o remount,bind,ro /sys || exit 1
		mkdir -p /run/systemd/network /run/systemd/netif/links /run/systemd/netif/leases
		chmod -R 0755 /run
		cp "$0"/* /run/systemd/network && SYSTEMD_LOG_TARGET=console exec "$1"
	' "$2" "$NETWORKD"
}

# has NODE PORT ADDRESS MTU
has() {
	ip -n "$(mesh_ns "$1")" -o address show dev "$2" | grep -q " $3 " &&
		[[ $(on "$1" cat "/sys/class/net/$2/mtu") == "$4" ]]
}

# expect_configured NODE PORT ADDRESS MTU
expect_configured() {
	wait_for "has $*" 60 || {
		cat "$OUT/networkd.log"
		ip -n "$(mesh_ns "$1")" address
		fail "networkd did not give $3 and MTU $4 to $2 of $1"
	}
}

[[ -x $NETWORKD ]] || skip "systemd-networkd is missing (Debian, Ubuntu: systemd)"
mesh_init
mesh_node a b
mesh_pair a mesh0 b mesh0
mesh_pair a mesh1 b mesh1
on a sh -c 'unshare -m --propagation private sh -c "mount -t tmpfs tmpfs /run"' ||
	skip "the kernel does not let us mount"
"$MESH_BUILD/fi_mesh" plan line a b --parallel 2 --range 10.77.100.0/16 --config networkd \
	--write "$OUT/plan" >/dev/null || fail "fi_mesh plan"
networkd a "$OUT/plan/a/networkd/etc/systemd/network"
expect_configured a mesh0 10.77.100.1/24 9000
expect_configured a mesh1 10.77.101.1/24 9000
! grep -iE 'unknown|invalid|bad|ignoring assignment' "$OUT/networkd.log" ||
	fail "networkd complains"
note "systemd-networkd sets address and MTU of both ports"
