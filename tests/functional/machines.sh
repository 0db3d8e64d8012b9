# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# machines.sh - nodes that boot Debian's systemd with the real NetworkManager, systemd-networkd and
# netplan, each on an overlay of this machine's root. To be sourced.

# shellcheck source=tests/functional/up_nodes.sh
. "$(dirname "${BASH_SOURCE[0]}")/up_nodes.sh"

MACHINE_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/nccl-net-mesh/machine
MACHINE_PACKAGES="network-manager netplan.io openssh-server"
# What this root may have, and a machine of the tests does not need.
MACHINE_MASKED="postgresql slurmctld slurmd munge nftables getty.target console-getty
	systemd-timesyncd systemd-firstboot systemd-sysctl NetworkManager systemd-networkd
	NetworkManager-wait-online systemd-networkd-wait-online apt-daily.timer man-db.timer
	apt-daily-upgrade.timer"
declare -A MACHINE_RUNS

# overlay FOLDER LOWER: what is written to FOLDER/root, which begins as LOWER, is in FOLDER/upper.
overlay() {
	mkdir -p "$1"/{upper,work,root}
	mountpoint -q "$1/root" ||
		mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" \
			"$1/root" || skip "no overlay of $2 can be mounted"
}

# The packages are installed once, on an overlay: never on the machine that runs the tests.
services_install() {
	local root=$MACHINE_CACHE/root

	overlay "$MACHINE_CACHE" /
	[[ ! -e $MACHINE_CACHE/done ]] || return 0
	mkdir -p "$root/proc" && mount -t proc proc "$root/proc"
	printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
	chmod 755 "$root/usr/sbin/policy-rc.d"
	# shellcheck disable=SC2086 # words
	DEBIAN_FRONTEND=noninteractive chroot "$root" sh -c "apt-get update -q &&
		apt-get install -y -q --no-install-recommends $MACHINE_PACKAGES" \
		>"$OUT/services.log" 2>&1 || { cat "$OUT/services.log"; skip "no packages"; }
	rm -f "$root/usr/sbin/policy-rc.d" "$root"/etc/netplan/*
	umount "$root/proc"
	touch "$MACHINE_CACHE/done"
}

# machines_init NODE...: to be called first, in place of mesh_init().
machines_init() {
	local node

	command -v systemd-nspawn >/dev/null ||
		skip "systemd-nspawn is missing (Debian, Ubuntu: systemd-container)"
	mesh_init
	trap machines_cleanup EXIT
	MACHINES=$(mktemp -d) || fail "mktemp"
	mesh_node "$@"
	keys_make
	cp "$KEYS/config" "$KEYS/config.machine"
	services_install
	for node in "$@"; do
		printf 'Host %s\n\tHostName %s\n' "$node" "$(mesh_mgmt_addr "$node")" \
			>>"$KEYS/config"
	done
}

# machine_make NODE SERVICE: a machine whose cables SERVICE configures (netplan, nm or networkd).
machine_make() {
	local folder=$MACHINES/$1 root unit other

	root=$folder/root
	overlay "$folder" "$MACHINE_CACHE/root"
	for unit in $MACHINE_MASKED; do
		[[ $unit == *.* ]] || unit=$unit.service
		ln -sf /dev/null "$root/etc/systemd/system/$unit"
	done
	ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
	echo "$1" >"$root/etc/hostname"
	printf '127.0.0.1\tlocalhost\n127.0.1.1\t%s\n' "$1" >"$root/etc/hosts"
	for other in "${!MESH_NODE_NUMBER[@]}"; do
		[[ $other == "$1" ]] ||
			printf '%s\t%s\n' "$(mesh_mgmt_addr "$other")" "$other" >>"$root/etc/hosts"
	done
	tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
	mkdir -p "$root/root/.ssh" "$root/run"
	cp "$KEYS/user" "$root/root/.ssh/id_ed25519"
	cp "$KEYS/user.pub" "$root/root/.ssh/authorized_keys"
	chmod 700 "$root/root" "$root/root/.ssh"
	grep -v '^IdentityFile' "$KEYS/config.machine" >"$root/root/.ssh/config"
	# udev is to know the NICs of this machine, and no other device, and gives them no other MAC
	# address; NetworkManager leaves veth pairs alone otherwise.
	mkdir -p "$root/etc/systemd/system/systemd-udev-trigger.service.d"
	printf '[Service]\nExecStart=\nExecStart=udevadm trigger --subsystem-match=net -c add\n' \
		>"$root/etc/systemd/system/systemd-udev-trigger.service.d/net.conf"
	ln -sf /dev/null "$root/etc/udev/rules.d/85-nm-unmanaged.rules"
	ln -sf /dev/null "$root/etc/systemd/network/99-default.link"
	case $2 in
	nm) unit=NetworkManager.service ;;
	*) unit=systemd-networkd.service ;;
	esac
	ln -sf "/lib/systemd/system/$unit" "$root/etc/systemd/system/$unit"
	ln -sf "/lib/systemd/system/$unit" "$root/etc/systemd/system/multi-user.target.wants/$unit"
}

# machine_boot NODE: with the links that its namespace has. The machine gets the /sys that is here,
# which must be that namespace's, and needs cgroups.
machine_boot() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	nsenter --net="/run/netns/$(mesh_ns "$1")" unshare --mount sh -c '
		mount --rbind /sys/fs/cgroup /mnt && mount -t sysfs sysfs /sys &&
			mount --rbind /mnt /sys/fs/cgroup && exec "$@"' sh \
		env SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes systemd-nspawn -q -b -M "$1" \
		-D "$MACHINES/$1/root" --bind-ro="$MESH_TOP" --console=pipe --link-journal=no \
		--register=no --keep-unit --capability=CAP_NET_ADMIN \
		--network-namespace-path="/run/netns/$(mesh_ns "$1")" \
		>"$MACHINES/$1.console" 2>&1 </dev/null &
	MACHINE_RUNS[$1]=$!
}

# machine_booted NODE: its ssh answers.
machine_booted() {
	wait_for "on mgmt timeout 5 ssh -F $KEYS/config $1 true 2>/dev/null" 120 ||
		{ tail -50 "$MACHINES/$1.console"; fail "machine $1 does not boot"; }
}

# machine_halt NODE: powers it off.
machine_halt() {
	on mgmt ssh -F "$KEYS/config" "$1" poweroff 2>/dev/null
	wait "${MACHINE_RUNS[$1]}"
}

# Runs on EXIT in place of mesh_cleanup(), and ends with it.
machines_cleanup() {
	local status=$? pid root

	trap - EXIT
	for pid in "${MACHINE_RUNS[@]}"; do
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	for root in "$MACHINES"/*/root "$MACHINE_CACHE/root"; do
		! mountpoint -q "$root" || umount -l "$root"
	done
	rm -rf "$MACHINES"
	(exit $status)
	mesh_cleanup
}
