# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# up_nodes.sh - nodes with an sshd, an /etc and a configuration tool of their own. To be sourced.
#
# The tools are stand-ins that read the files where the real ones do and configure the NICs with
# ip: netplan with the real `netplan generate`, NetworkManager's keyfiles, networkd's files.

# shellcheck source=tests/functional/expect.sh
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

SSHD=/usr/sbin/sshd
KEYS=$OUT/ssh
# Where the nodes' commands are. The six pairs share the sizes that are checked, and each
# measurement is short.
BIN=$OUT/short
pingpong_short "$BIN" --check-every 6 --seconds 0.02 --repeat 1

# node_etc NODE, node_lib NODE: the node's /etc and /var/lib, from outside.
node_etc() { echo "$OUT/$1/etc"; }
node_lib() { echo "$OUT/$1/lib"; }

keys_make() {
	mkdir -p "$KEYS"
	ssh-keygen -q -t ed25519 -N '' -f "$KEYS/host" && ssh-keygen -q -t ed25519 -N '' \
		-f "$KEYS/user" || fail "ssh-keygen"
	cat >"$KEYS/config" <<-END
		IdentityFile $KEYS/user
		IdentitiesOnly yes
		StrictHostKeyChecking no
		UserKnownHostsFile /dev/null
		LogLevel ERROR
		User root
	END
}

# tools_make NODE TOOL: what of netplan, nm, networkd and ip the node has.
tools_make() {
	local bin=$OUT/$1/bin

	mkdir -p "$bin"
	case $2 in
	netplan)
		mkdir -p "$(node_etc "$1")/netplan"
		printf 'network:\n  version: 2\n' >"$(node_etc "$1")/netplan/50-cloud-init.yaml"
		chmod 600 "$(node_etc "$1")/netplan/50-cloud-init.yaml"
		tool_link "$bin/netplan"
		;;
	nm) tool_link "$bin/nmcli" ;;
	networkd)
		tool_link "$bin/networkctl"
		printf '#!/bin/sh\nexit 0\n' >"$bin/systemctl"
		chmod 755 "$bin/systemctl"
		;;
	esac
}

tool_link() {
	printf '#!/bin/sh\nexec python3 %s %s "$@"\n' "$MESH_TOP/tests/functional/fake_tools.py" \
		"${1##*/} $(dirname "$(dirname "$1")")" >"$1"
	chmod 755 "$1"
}

# node_sshd NODE TOOL: starts the node's sshd, with an /etc, /var/lib and /run of its own.
node_sshd() {
	local folder=$OUT/$1

	mkdir -p "$folder/lib"
	cp -a /etc "$folder/etc"
	rm -rf "$folder/etc/netplan" "$folder/etc/NetworkManager" "$folder/etc/systemd/network"
	sed -i 's/^root:[^:]*:/root:*:/' "$folder/etc/shadow"
	tools_make "$1" "$2"
	cat >"$KEYS/$1.sshd" <<-END
		ListenAddress $(mesh_mgmt_addr "$1")
		HostKey $KEYS/host
		AuthorizedKeysFile $KEYS/user.pub
		StrictModes no
		PermitRootLogin yes
		PidFile none
		UsePAM no
		SetEnv PATH=$folder/bin:/usr/sbin:/usr/bin:/sbin:/bin
	END
	printf 'Host %s\n\tHostName %s\n' "$1" "$(mesh_mgmt_addr "$1")" >>"$KEYS/config"
	# shellcheck disable=SC2016 # expanded by the inner shell
	mesh_spawn "$1" "$folder/sshd.log" sh -c '
		mount --bind "$0/etc" /etc && mount --bind "$0/lib" /var/lib &&
			mount -t tmpfs none /run && mkdir /run/sshd && exec '"$SSHD"' -D -e -f "$1"
		' "$folder" "$KEYS/$1.sshd"
	wait_for "grep -q 'Server listening' $folder/sshd.log" 60 ||
		{ cat "$folder/sshd.log"; fail "the sshd of $1 does not start"; }
}

# etc_sum NODE: every file of the node's /etc, with its mode and time, in one checksum.
etc_sum() {
	(cd "$(node_etc "$1")" && {
		find . -printf '%p %m %u %l\n' | sort
		find . -type f -printf '%p %T@\n' | sort
		find . -type f -print0 | sort -z | xargs -0 sha256sum
	} | sha256sum)
}

# nics_sum NODE: MTU, addresses and state of its NICs.
nics_sum() {
	ip -n "$MESH_PREFIX$1" -j address show |
		python3 -c '
import json, sys
for link in json.load(sys.stdin):
    print(link["ifname"], link["mtu"], "UP" in link["flags"],
          *sorted(a["local"] for a in link["addr_info"] if a["scope"] == "global"))
'
}

# mesh_command NAME STATUS COMMAND ARGUMENT...: `fi_mesh COMMAND` from the management network; its
# output goes to $OUT/NAME.out.
mesh_command() {
	local name=$1 want=$2 status

	shift 2
	# Where all cores are busy, an sshd needs more than the usual 10 s for its first words.
	on mgmt timeout 300 "$MESH_BUILD/fi_mesh" "$@" --connect-timeout 100 \
		--ssh "ssh -F $KEYS/config" --bin "$BIN" >"$OUT/$name.out" 2>&1 </dev/null
	status=$?
	((status == want)) || { cat "$OUT/$name.out"; fail "$name: status $status, not $want"; }
}

# has NAME TEXT...: the output has these texts.
has() {
	local name=$1 text

	shift
	for text in "$@"; do
		grep -qF -e "$text" "$OUT/$name.out" ||
			{ cat "$OUT/$name.out"; fail "$name has no \"$text\""; }
	done
}
